"""Training against an independent float64 implementation of the protocol, written here from its
text.

It shares nothing with the package but the starting weights and the random generator's state: its
LSTM is a loop of equations, its loss the materialised softmax, its optimiser a list of
subtractions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.support import output_layer_formulas as formulas
from tests.support import tiny_trial as tiny
from trainables.config import (
    AveragingConfig,
    EtAsgdConfig,
    MosConfig,
    NtAsgdConfig,
    TrialConfig,
)
from trainables.output_layers import PiecewiseLinear, Pointwise, building
from trainables.runtime import Runtime
from trainables.training.averaging import should_switch
from trainables.training.loop import DivergedError, Trainer
from trainables.trial_folder.checkpoint import Checkpoints
from trainables.trial_folder.folder import TrialFolder

STEPS = 40


def lstm(
    x: Tensor, weights: list[Tensor], state: tuple[Tensor, Tensor]
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    w_ih, w_hh, b_ih, b_hh = weights
    h, c = state
    outputs = []
    for step in x:
        i, f, g, o = (step @ w_ih.T + b_ih + h @ w_hh.T + b_hh).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), (h.detach(), c.detach())


class Reference:
    """The protocol in float64: one object, one `step`."""

    def __init__(self, trainer: Trainer, tokens: np.ndarray) -> None:
        assert isinstance(trainer.config, TrialConfig)
        self.config = trainer.config
        named = dict(trainer.model.named_parameters())
        self.at = {
            name: p.detach().double().clone().requires_grad_(p.requires_grad)
            for name, p in named.items()
        }
        self.names = [name for name, p in named.items() if p.requires_grad]
        self.weights = [self.at[name] for name in self.names]
        self.random = torch.Generator()
        self.random.set_state(trainer.draws.get_state())
        batch = self.config.training.batch_size
        length = len(tokens) // batch
        self.streams = [tokens[b * length : (b + 1) * length] for b in range(batch)]
        self.position = 0
        model = self.config.model
        sizes = (model.hidden_width, model.hidden_width, model.context_width)
        self.zero = [
            (torch.zeros(batch, s).double(), torch.zeros(batch, s).double()) for s in sizes
        ]
        self.state = list(self.zero)
        self.averages: list[list[Tensor]] = []
        self.steps, self.tokens = 0, 0
        self.moments = [
            (torch.zeros_like(weight), torch.zeros_like(weight)) for weight in self.weights
        ]

    def step(self, average: bool) -> float:
        t = self.config.training
        length = len(self.streams[0])
        mean = t.bptt / 2 if torch.rand((), generator=self.random) < 0.05 else t.bptt
        seq_len = max(5, int(mean + 5 * torch.randn((), generator=self.random).item()))
        drawn = min(seq_len, t.bptt + 40)
        seq_len = min(drawn, length - 1 - self.position)
        window = np.stack(
            [s[self.position : self.position + seq_len + 1] for s in self.streams], axis=1
        )
        tokens = torch.from_numpy(window)

        h = self.at["embedding_VD"][tokens[:-1]]
        for index in range(3):
            keys = [f"layers.{index}.{n}" for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            h, self.state[index] = lstm(h, [self.at[key] for key in keys], self.state[index])
        targets = tokens[1:].reshape(-1)
        output = {name.removeprefix("output."): p for name, p in self.at.items()}
        weight = self.at["embedding_VD"]
        if "head.left_VR" in self.at:
            weight = self.at["head.left_VR"] @ self.at["head.right_RD"]
        rows = formulas.log_p(self.config.output_layer, output, h.reshape(-1, h.shape[-1]), weight)
        loss = -rows[torch.arange(len(targets)), targets].mean()
        total = loss + t.activation_regularisation * (h**2).mean()
        total = total + t.temporal_activation_regularisation * ((h[1:] - h[:-1]) ** 2).mean()
        gradients = torch.autograd.grad(total, self.weights)
        norm = math.sqrt(sum(float((g**2).sum()) for g in gradients))
        scale = min(1.0, t.gradient_clip_norm / (norm + 1e-6))
        self.steps += 1
        self.tokens += len(targets)
        warm = min(1.0, self.tokens / t.warm_up_tokens) if t.warm_up_tokens else 1.0
        with torch.no_grad():
            for name, weight, gradient, moments in zip(
                self.names, self.weights, gradients, self.moments, strict=True
            ):
                slopes = name == "output.function.weight_K"
                rate = (
                    getattr(self.config.output_layer, "learning_rate", None)
                    if slopes
                    else t.learning_rate
                )
                assert rate is not None
                rate *= (
                    warm * drawn / t.bptt
                )  # of the length drawn, also where the text ends earlier
                change = gradient * scale + t.weight_decay * weight
                weight -= rate * (self.adam(change, *moments) if t.optimizer == "adam" else change)
        if average:
            self.averages.append([weight.detach().clone() for weight in self.weights])
        self.position += seq_len
        if self.position >= length - 2:
            self.position, self.state = 0, list(self.zero)
        return loss.item()

    def adam(self, gradient: Tensor, mean: Tensor, square: Tensor) -> Tensor:
        """Kingma and Ba (2015), algorithm 1."""
        mean += 0.1 * (gradient - mean)
        square += 0.001 * (gradient**2 - square)
        return (mean / (1 - 0.9**self.steps)) / ((square / (1 - 0.999**self.steps)) ** 0.5 + 1e-8)


CONFIGS = (
    *(tiny.trial(output_layer=layer, dropout=False) for layer in formulas.EVERY_LAYER),
    tiny.trial(dropout=False, optimizer="adam", learning_rate=0.002, warm_up_tokens=1_000),
    tiny.trial(output_layer=MosConfig(mixtures=3, latent_dropout=0.0), dropout=False, head_rank=3),
)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.output_layer.name)
def test_steps_agree_with_the_protocol(config: TrialConfig) -> None:
    """In float64: each step's loss, and the weights at the end."""
    corpus = tiny.corpus()
    trainer = Trainer(config, corpus, Runtime())
    reference = Reference(trainer, corpus.train)
    for _ in range(STEPS):
        trainer.step()
        found = trainer.epoch_loss.item() / trainer.progress.epoch_tokens
        trainer.epoch_loss.zero_()
        trainer.progress.epoch_tokens = 0
        assert found == pytest.approx(reference.step(average=False), rel=1e-4)
    assert trainer.progress.position == reference.position
    for name, parameter in trainer.model.named_parameters():
        difference = (parameter.detach().double() - reference.at[name].detach()).abs().max()
        assert difference < 2e-4, name


class Wrapped(Pointwise):
    """A function of a user's own around one of the package, with the learning rate of that one."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = PiecewiseLinear(5, limit=20.0, learning_rate=0.02)
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, logits: Tensor) -> Tensor:
        return self.scale * self.inner(logits)

    def own_learning_rate(self) -> float | None:
        return 0.01


def test_own_learning_rate_of_a_wrapped_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(building, "SmoothBend", lambda **_: Wrapped())
    trainer = Trainer(tiny.trial(), tiny.corpus(), Runtime())
    sizes = [(group["lr"], len(group["params"])) for group in trainer.optimizer.param_groups]
    assert sizes == [(5.0, len(list(trainer.model.parameters())) - 2), (0.01, 2)]


def test_average_is_the_mean_since_the_switch() -> None:
    corpus = tiny.corpus(train_tokens=600)
    config = tiny.trial(dropout=False, averaging=EtAsgdConfig(switch_epoch=1), epochs=3)
    trainer = Trainer(config, corpus, Runtime())
    reference = Reference(trainer, corpus.train)
    epochs = 0
    while epochs < 3:
        trainer.step()
        reference.step(average=epochs >= 1)
        if trainer.ends_epoch:
            trainer.end_epoch()
            epochs += 1
    assert trainer.average is not None
    assert [epoch.averaging for epoch in trainer.progress.epochs] == [False, True, True]
    for found, *history in zip(trainer.average.tensors.values(), *reference.averages, strict=True):
        torch.testing.assert_close(found.double(), torch.stack(history).mean(0), rtol=0, atol=2e-5)


def test_epoch_of_a_token_budget_goes_on() -> None:
    corpus = tiny.corpus(train_tokens=2000)
    config = tiny.trial(epochs=5, epoch_tokens=700)
    whole = Trainer(tiny.trial(epochs=2), corpus, Runtime())
    budget = Trainer(config, corpus, Runtime())
    losses = []
    for trainer in (whole, budget):
        seen: list[float] = []
        while trainer.progress.step < 40:
            before = trainer.epoch_loss.item()
            trainer.step()
            seen.append(trainer.epoch_loss.item() - before)
            if trainer.ends_epoch:
                trainer.progress.epoch_tokens = 0
                trainer.epoch_loss.zero_()
        losses.append(seen)
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


def test_best_model_is_kept() -> None:
    corpus = tiny.corpus()
    trainer = Trainer(
        tiny.trial(epochs=8, averaging=NtAsgdConfig(nonmonotone_interval=2)), corpus, Runtime()
    )
    kept_after: dict[int, dict[str, Tensor]] = {}
    while len(trainer.progress.epochs) < 8:
        trainer.step()
        if trainer.ends_epoch:
            number = trainer.end_epoch().epoch
            source = (
                trainer.average.tensors
                if trainer.average and trainer.progress.epochs[-1].averaging
                else None
            )
            weights = source or dict(trainer.model.named_parameters())
            kept_after[number] = {name: w.detach().clone() for name, w in weights.items()}
    losses = [epoch.valid_loss for epoch in trainer.progress.epochs]
    best = int(np.argmin(losses)) + 1
    assert trainer.progress.kept_epoch == best
    for name, tensor in trainer.kept.items():
        assert torch.equal(tensor, kept_after[best][name])


@pytest.mark.parametrize(
    ("config", "losses", "switches_after"),
    [
        (NtAsgdConfig(nonmonotone_interval=5), [5, 4, 3, 2, 1, 0.5, 0.4, 0.3], None),
        # Above the minimum of all but the last five, which is 4.
        (NtAsgdConfig(nonmonotone_interval=5), [5, 4, 3, 2, 1, 1, 1, 6], 8),
        # There is nothing before the last five.
        (NtAsgdConfig(nonmonotone_interval=5), [5, 4, 3, 2, 1, 5.5], None),
        (EtAsgdConfig(switch_epoch=200), [1.0] * 210, 200),
    ],
)
def test_averaging_starts_by_its_rule(
    config: AveragingConfig, losses: list[float], switches_after: int | None
) -> None:
    switched = (
        number
        for number, loss in enumerate(losses, 1)
        if should_switch(config, epoch=number, valid_loss=loss, earlier_losses=losses[: number - 1])
    )
    assert next(switched, None) == switches_after


def test_diverged_run(tmp_path: Path) -> None:
    trainer = Trainer(tiny.trial(learning_rate=1e9, epochs=3), tiny.corpus(), Runtime())
    with pytest.raises(DivergedError, match=r"loss became .* in epoch 1"):
        trainer.train(Checkpoints(TrialFolder(tmp_path, "x")), lambda _: None)
