"""Times of steps (stacks, lone trials, PyTorch's LSTM) and peak rates of a device."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from gpu_proof.report import NotTriedError
from gpu_proof.trials import CORPORA, layer_config, random_corpus, scale_on, trial
from trainables.config import LanguageTrialConfig, TrialConfig
from trainables.corpora import Corpus
from trainables.device import (
    Precision,
    forget_cache,
    free_bytes,
    network_dtype,
    on_gpu,
    products_in,
    wait,
)
from trainables.runtime import Runtime
from trainables.stack import Stack, stack_bytes
from trainables.training import EagerSGD, Trainer, WeightAverage

WARM_UP_PASSES = 3
"""Number of untimed passes: a stack captures a window length at its second use."""


class Pace(NamedTuple):
    """Seconds of a timed run, and its tokens and steps summed over models."""

    seconds: float
    tokens: int
    model_steps: int

    @property
    def step_ms(self) -> float:
        """Milliseconds per step of one model."""
        return 1e3 * self.seconds / self.model_steps


def seconds_of(function: Callable[[], object], device: str) -> float:
    """Return the seconds of a call, by GPU events or the CPU's clock, including host waits."""
    wait(device)
    if on_gpu(device):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        wait(device)
        return 1e-3 * start.elapsed_time(end)
    started_s = time.perf_counter()
    function()
    return time.perf_counter() - started_s


def seconds_a_call(function: Callable[[], object], device: str, calls: int = 10) -> float:
    """Return the mean seconds of `calls` calls after one warm-up call."""
    function()
    return seconds_of(lambda: [function() for _ in range(calls)], device) / calls


def usual_trainer(config: LanguageTrialConfig, corpus: Corpus, device: str) -> Trainer:
    """Return a new trial. An AWD-LSTM averages weights from the start, as in most epochs."""
    trainer = Trainer(config, corpus, Runtime(device=device))
    if isinstance(config, TrialConfig):
        trainer.average = WeightAverage(trainer.model)
    return trainer


class Headline(NamedTuple):
    """Stack of AWD-LSTMs with one config: the papers' shapes on a GPU, tiny on a CPU."""

    corpus: str
    layer: str
    precision: Precision
    models: int

    def __str__(self) -> str:
        return f"{self.models} models, {self.corpus}, {self.layer}, {self.precision}"

    def config(self, device: str) -> TrialConfig:
        """Return each model's config."""
        scale = scale_on(device)
        return trial(
            self.corpus, layer_config(self.layer, self.corpus, scale), self.precision, scale
        )

    def planned_bytes(self, device: str) -> float:
        """Return the bytes of GPU memory that the stack needs, as planned by `stack_bytes`."""
        return stack_bytes(self.config(device), CORPORA[self.corpus][2], self.models)

    def stack(self, device: str) -> Stack:
        """Return a stack of new trials. Raises NotTriedError if GPU memory is too small."""
        gc.collect()
        forget_cache(device)
        if on_gpu(device) and (planned := self.planned_bytes(device)) > free_bytes():
            raise NotTriedError(f"needs {planned / 2**30:.0f} GiB of free memory")
        config, text = self.config(device), random_corpus(self.corpus, scale_on(device))
        return Stack([usual_trainer(config, text, device) for _ in range(self.models)])


def stack_pace(stack: Stack, steps: int) -> Pace:
    """Time `steps` steps of a stack."""
    return _pace(stack.step, stack.trainers, steps)


def alone_pace(trainer: Trainer, steps: int) -> Pace:
    """Time `steps` steps of one trial, by cuDNN on a GPU."""
    return _pace(trainer.step, [trainer], steps)


def _pace(step: Callable[[], None], trainers: Sequence[Trainer], steps: int) -> Pace:
    # Restoring the generators makes window lengths equal in all passes.
    draws = trainers[0].draws.get_state()

    def run() -> None:
        for trainer in trainers:
            trainer.draws.set_state(draws)
        for _ in range(steps):
            step()

    for _ in range(WARM_UP_PASSES):
        run()
    tokens = sum(trainer.progress.tokens for trainer in trainers)
    seconds = seconds_of(run, trainers[0].runtime.device)
    tokens = sum(trainer.progress.tokens for trainer in trainers) - tokens
    return Pace(seconds, tokens, steps * len(trainers))


class _Framework(nn.Module):
    def __init__(self, config: TrialConfig, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, config.model.embedding_width)
        self.layers = nn.ModuleList(nn.LSTM(into, out) for into, out in config.model.layer_widths)
        self.output = nn.Linear(config.model.context_width, vocabulary)
        self.output.weight = self.embedding.weight

    def forward(self, tokens_TB: Tensor) -> Tensor:
        hidden = self.embedding(tokens_TB)
        for layer in self.layers:
            hidden, _ = layer(hidden)
        return self.output(hidden)


def framework_pace(config: TrialConfig, vocabulary: int, device: str, steps: int) -> Pace:
    """Time `steps` steps of only PyTorch's LSTM and softmax: a lower bound for one model.

    In bf16, parameters are bf16 too.
    """
    training = config.training
    model = _Framework(config, vocabulary).to(device)
    if training.precision == "bf16":
        model.to(network_dtype("bf16", model.output.weight))
    optimizer = EagerSGD(
        model.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
    )
    tokens = torch.randint(vocabulary, (training.bptt + 1, training.batch_size), device=device)

    def run() -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            with products_in(training.precision, device):
                cross_entropy(
                    model(tokens[:-1]).flatten(0, 1).float(), tokens[1:].flatten()
                ).backward()
            nn.utils.clip_grad_norm_(model.parameters(), training.gradient_clip_norm)
            optimizer.step()

    run()
    return Pace(seconds_of(run, device), steps * training.bptt * training.batch_size, steps)


class Ceilings(NamedTuple):
    """Measured peak rates of a device.

    `tflop_s` is for products of square matrices; `copy_gb_s` counts bytes read and bytes written.
    """

    tflop_s: dict[Precision, float]
    copy_gb_s: float


def ceilings(precisions: Sequence[Precision], device: str, size: int) -> Ceilings:
    """Measure the device's peak rates with matrices of `size` x `size`."""
    rates = {}
    for precision in precisions:
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
        result = torch.empty_like(left)
        with products_in(precision, device):
            rates[precision] = (
                2e-12 * size**3 / seconds_a_call(partial(torch.mm, left, right, out=result), device)
            )
    source = torch.ones(4 * size * size, device=device)
    target = torch.empty_like(source)
    seconds = seconds_a_call(partial(target.copy_, source), device)
    return Ceilings(rates, 1e-9 * 2 * source.nbytes / seconds)
