"""Seconds and peak memory of output layers' training losses, compared with the plain formulation.

`plain` computes all logits, applies f and log_softmax, and uses autograd. For mixtures, it sums
N x K x V probabilities and takes their log, as published. `products` is a lower bound: only the
three matrix products of an exact loss, in equal chunks. `framework` is PyTorch's chunked
`linear_cross_entropy` (2.13 or later), for softmax only.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from statistics import median

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import nll_loss

from gpu_proof.trials import layer_config
from search_spaces.awd_lstm import awd_lstm
from trainables.config import (
    CorpusConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    chunk_rows,
)
from trainables.language_model import AwdLstm
from trainables.measurements import PeakMemory, status_mib
from trainables.output_layers import (
    LayerShape,
    MixtureOfSoftmaxes,
    OutputLayer,
    PointwiseSoftmax,
    build_output_layer,
)

LAYERS = {
    name: layer_config(name, "ptb")
    for name in ("gss", "softcap", "softmax", "lms_plif", "mos", "mos_plif")
}
V, D, N = 10_000, 64, 1_400
WINDOW = 70

Prepare = Callable[[], Callable[[], object]]
"""Function that prepares inputs and returns the function to time. It must be picklable."""
Loss = Callable[[OutputLayer, Tensor, Tensor, Tensor], Tensor]
_variant: _Variant


@dataclass(frozen=True)
class Timing:
    """Seconds per round, and peak memory beyond the inputs."""

    all_s: list[float]
    peak_mib: float


class _Variant:
    def __init__(self, prepare: Prepare) -> None:
        self.run = prepare()
        self.peak = PeakMemory()  # resets the peak of imports and preparation
        self.before_mib = status_mib("VmRSS") or 0.0


def _start(prepare: Prepare) -> None:
    global _variant
    _variant = _Variant(prepare)


def _seconds() -> float:
    start = time.perf_counter()
    _variant.run()
    return time.perf_counter() - start


def _peak_mib() -> float:
    return _variant.peak.peak_mib() - _variant.before_mib


def compare(variants: Mapping[str, Prepare], *, rounds: int, warmup: int = 1) -> dict[str, Timing]:
    """Time variants in turns (A B A B ...), each in its own process, never two at once."""
    with ExitStack() as stack:
        pools = {
            name: stack.enter_context(
                ProcessPoolExecutor(1, get_context("spawn"), _start, (prepare,))
            )
            for name, prepare in variants.items()
        }
        turns = [
            {name: pool.submit(_seconds).result() for name, pool in pools.items()}
            for _ in range(warmup + rounds)
        ]
        return {
            name: Timing([turn[name] for turn in turns[warmup:]], pool.submit(_peak_mib).result())
            for name, pool in pools.items()
        }


def print_table(title: str, timings: Mapping[str, Timing], *, reference: str) -> None:
    base = timings[reference]
    print(f"\n{title}")
    print(
        f"{'variant':<20}{'median s':>10}{'min..max s':>20}{'peak MiB':>10}"
        f"{'faster':>8}{'memory':>8}"
    )
    for name, timing in timings.items():
        spread, median_s = f"{min(timing.all_s):.4g}..{max(timing.all_s):.4g}", median(timing.all_s)
        print(
            f"{name:<20}{median_s:>10.4g}{spread:>20}{timing.peak_mib:>10.0f}"
            f"{median(base.all_s) / median_s:>8.2f}{timing.peak_mib / base.peak_mib:>8.2f}"
        )


def chunked(layer: OutputLayer, hidden_TBC: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
    return layer.loss(hidden_TBC, weight_VD, targets_N)


def plain(layer: OutputLayer, hidden_TBC: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
    hidden_NC = hidden_TBC.flatten(0, 1)
    if not isinstance(layer, MixtureOfSoftmaxes):
        return nll_loss(layer.log_probabilities(hidden_NC, weight_VD), targets_N)
    latent_NKD = layer.latent(hidden_TBC)
    logits_NKV = layer.function(latent_NKD @ weight_VD.t() + layer.bias_V)
    prior_NK1 = layer.log_prior(hidden_NC).exp().unsqueeze(2)
    p_NV = (torch.softmax(logits_NKV, dim=2) * prior_NK1).sum(1)
    return nll_loss((p_NV + 1e-8).log(), targets_N)


def framework(
    layer: OutputLayer, hidden_TBC: Tensor, weight_VD: Tensor, targets_N: Tensor
) -> Tensor:
    assert isinstance(layer, PointwiseSoftmax)
    return functional.linear_cross_entropy(
        hidden_TBC.flatten(0, 1),
        weight_VD,
        targets_N,
        linear_bias=layer.bias_V,
        options=torch.nn.LinearCrossEntropyOptions(),
    )


def losses_for(config: OutputLayerConfig) -> dict[str, Loss]:
    losses: dict[str, Loss] = {"plain": plain, "chunked": chunked}
    if isinstance(config, SoftmaxConfig) and hasattr(functional, "linear_cross_entropy"):
        losses["framework"] = framework
    return losses


def prepare_loss(config: OutputLayerConfig, loss: Loss) -> Callable[[], object]:
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    generator = torch.Generator().manual_seed(0)
    layer = build_output_layer(
        config, LayerShape(vocabulary_size=V, embedding_width=D, context_width=D)
    )
    layer.initialise(generator)
    hidden_TBC = torch.randn(WINDOW, N // WINDOW, D, generator=generator).requires_grad_()
    weight_VD = torch.empty(V, D).uniform_(-0.1, 0.1, generator=generator).requires_grad_()
    targets_N = torch.randint(V, (N,), generator=generator)

    def run() -> None:
        hidden_TBC.grad = weight_VD.grad = None
        layer.zero_grad()
        loss(layer, hidden_TBC, weight_VD, targets_N).backward()

    return run


def prepare_products(config: OutputLayerConfig) -> Callable[[], object]:
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    total = N * (config.mixtures if isinstance(config, MosConfig | MosPlifConfig) else 1)
    hidden_ND, weight_VD = torch.randn(total, D), torch.empty(V, D).uniform_(-0.1, 0.1)
    rows = chunk_rows(V, D, 4, "cpu")

    def run() -> None:
        logits_nV, grad_ND, grad_VD = torch.empty(rows, V), torch.empty(total, D), torch.zeros(V, D)
        for start in range(0, total, rows):
            hidden = hidden_ND[start : start + rows]
            logits = torch.mm(hidden, weight_VD.t(), out=logits_nV[: len(hidden)])
            torch.mm(logits, weight_VD, out=grad_ND[start : start + rows])
            grad_VD.addmm_(logits.t(), hidden)

    return run


def prepare_step(config: OutputLayerConfig, loss: Loss) -> Callable[[], object]:
    """Prepare a training step of the paper's model on Penn Treebank.

    Window T = 70, vocabulary V = 10,000, batch size B = 20, or 12 for mixtures.
    """
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    trial = awd_lstm(CorpusConfig(name="ptb", sha256="0" * 64), config)
    model, batch = AwdLstm(trial.model, config, V), trial.training.batch_size
    generator = torch.Generator().manual_seed(0)
    model.initialise(generator)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=20.0, weight_decay=1.2e-6)
    tokens_TB = torch.randint(V, (WINDOW + 1, batch), generator=generator)

    def run() -> None:
        contexts = model.contexts(tokens_TB[:-1], model.zero_state(batch), generator)
        optimizer.zero_grad()
        loss(
            model.output, contexts.dropped_TBC, model.output_weight(), tokens_TB[1:].reshape(-1)
        ).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("loss", "step"))
    parser.add_argument("--layers", nargs="+", choices=tuple(LAYERS), default=tuple(LAYERS))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for name in options.layers:
        config = LAYERS[name]
        if options.only != "step":
            variants = {
                kind: partial(prepare_loss, config, loss)
                for kind, loss in losses_for(config).items()
            }
            variants["products"] = partial(prepare_products, config)
            timings = compare(variants, rounds=options.rounds)
            print_table(
                f"{name}: forward and backward, V = {V:,}, D = {D}, N = {N:,}",
                timings,
                reference="plain",
            )
        if options.only != "loss":
            variants = {
                kind: partial(prepare_step, config, loss)
                for kind, loss in losses_for(config).items()
            }
            timings = compare(variants, rounds=max(3, options.rounds // 3))
            print_table(f"{name}: a whole step at paper shapes", timings, reference="plain")


if __name__ == "__main__":
    main()
