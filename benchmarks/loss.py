"""The training loss of the output layers against the plain formulation: seconds and peak memory.

`python -m benchmarks.loss` runs all; `--only loss` or `--only step` one of the parts. Plain means: logits materialised,
f applied to them, log_softmax, and the framework's autograd.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from benchmarks.side_by_side import compare, print_table
from trainables.config import GssConfig, LanguageModelConfig, OutputLayerConfig, SoftmaxConfig
from trainables.language_model.awd_lstm import AwdLstm
from trainables.output_layers import LayerShape, OutputLayer, build_output_layer

LAYERS: dict[str, OutputLayerConfig] = {"gss": GssConfig(c=-1.5, k=2.5), "softmax": SoftmaxConfig()}
V, D, N = 10_000, 64, 1_400
BATCH, WINDOW = 20, 70

Loss = Callable[[OutputLayer, Tensor, Tensor, Tensor], Tensor]


def chunked(layer: OutputLayer, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
    """The loss as the project computes it."""
    return layer.loss(hidden_ND, weight_VD, targets_N)


def plain(layer: OutputLayer, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
    """The loss as one writes it down."""
    return nll_loss(layer.log_probabilities(hidden_ND, weight_VD), targets_N)


def prepare_loss(config: OutputLayerConfig, loss: Loss) -> Callable[[], object]:
    """Forward and backward of the loss alone, V = 10,000, D = 64, N = 1,400."""
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    layer = build_output_layer(config, LayerShape(vocabulary_size=V, embedding_width=D, context_width=D))
    hidden_ND = torch.randn(N, D, requires_grad=True)
    weight_VD = torch.empty(V, D).uniform_(-0.1, 0.1).requires_grad_()
    targets_N = torch.randint(V, (N,))

    def run() -> None:
        hidden_ND.grad = weight_VD.grad = None
        layer.zero_grad()
        loss(layer, hidden_ND, weight_VD, targets_N).backward()

    return run


def prepare_step(config: OutputLayerConfig, loss: Loss) -> Callable[[], object]:
    """A whole training step of the paper's model on Penn Treebank's shapes: T = 70, B = 20, V = 10,000, 24.22M."""
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = AwdLstm(LanguageModelConfig(), config, V)
    generator = torch.Generator().manual_seed(0)
    model.initialise(generator)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=20.0, weight_decay=1.2e-6)
    tokens_TB = torch.randint(V, (WINDOW + 1, BATCH), generator=generator)

    def run() -> None:
        contexts = model.contexts(tokens_TB[:-1], model.zero_state(BATCH), generator)
        hidden_ND = contexts.dropped_TBC.flatten(0, 1)
        optimizer.zero_grad()
        loss(model.output, hidden_ND, model.embedding_VD, tokens_TB[1:].reshape(-1)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()

    return run


def main() -> None:
    """Print one table for each layer and part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("loss", "step"))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for name, config in LAYERS.items():
        if options.only != "step":
            variants = {
                "plain": partial(prepare_loss, config, plain),
                "chunked": partial(prepare_loss, config, chunked),
            }
            timings = compare(variants, rounds=options.rounds)
            print_table(f"{name}: forward and backward, V = {V:,}, D = {D}, N = {N:,}", timings, reference="plain")
        if options.only != "loss":
            variants = {
                "plain": partial(prepare_step, config, plain),
                "chunked": partial(prepare_step, config, chunked),
            }
            timings = compare(variants, rounds=max(3, options.rounds // 3))
            print_table(f"{name}: a whole step at paper shapes (24.22M, T = 70, B = 20)", timings, reference="plain")


if __name__ == "__main__":
    main()
