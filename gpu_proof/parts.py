"""Run and time single parts of a stack's step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gpu_proof.timing import seconds_a_call
from trainables.config import TrainingConfig
from trainables.device import Graphs, graphs_on, products_in
from trainables.language_model import LanguageModel
from trainables.stack import (
    OUTPUT,
    StackedDraws,
    StackedUpdate,
    Weights,
    draws_of,
    stacked_model,
    stacked_states,
)
from trainables.training import Trainer, Window


class PartsMs(NamedTuple):
    """Milliseconds per step of one model at the config's window length, without drawing masks.

    `network` and `output` are forward and backward passes, up to the context vectors and from
    there to the loss. `optimiser` includes gradient clipping.
    """

    network: float
    output: float
    optimiser: float


def parts_ms(trainers: Sequence[Trainer], calls: int) -> PartsMs:
    """Time the parts of a stack's step, replayed from graphs on a GPU.

    Changes the trainers' weights, and removes the trainers from their stack.
    """
    first, weights = trainers[0], Weights.shared_by([trainer.model for trainer in trainers])
    device, training = weights["embedding_VD"].device, first.config.training
    length = training.bptt if isinstance(training, TrainingConfig) else training.window
    window = Window(0, length, length)
    with products_in(first.config.training.precision, first.runtime.device):
        functions = (
            *_forward_and_back(trainers, weights, window),
            _optimiser(trainers, weights, window),
        )
        graphs = graphs_on(device)
        replays = (
            functions if graphs is None else [_capture(function, graphs) for function in functions]
        )
        seconds = [seconds_a_call(replay, first.runtime.device, calls) for replay in replays]
    return PartsMs(*(1e3 * s / len(trainers) for s in seconds))


def _forward_and_back(
    trainers: Sequence[Trainer], weights: Weights, window: Window
) -> tuple[Callable[[], None], Callable[[], None]]:
    model = stacked_model([trainer.model for trainer in trainers], weights)
    texts = [trainer.tokens(window) for trainer in trainers]
    tokens_GTB, targets_GN = (torch.stack(parts) for parts in zip(*texts, strict=True))
    embedding, lengths = weights["embedding_VD"], [window.steps] * len(trainers)
    rows = targets_GN, embedding.new_full(targets_GN.shape, 1 / targets_GN.shape[1])
    lengths_G = torch.tensor(lengths, device=embedding.device)
    model_draws = [
        draws_of(trainer.config, embedding.shape[1], window.steps) for trainer in trainers
    ]
    draws = StackedDraws(
        model_draws, [trainer.masks for trainer in trainers], embedding, window.steps
    )
    draws.draw(lengths)
    masks = draws.masks
    states = stacked_states([trainer.state for trainer in trainers])
    hidden = (
        model.contexts(tokens_GTB, states, lengths_G, masks).dropped_GTBC.detach().requires_grad_()
    )
    context_gradients = torch.full_like(hidden, 1e-3)
    output_weights = [
        w for name, _, w in weights.named() if name.startswith(OUTPUT) and w.requires_grad
    ]
    network_weights = [w for name, _, w in weights.named() if not name.startswith(OUTPUT)]

    def network() -> None:
        contexts = model.contexts(tokens_GTB, states, lengths_G, masks)
        torch.autograd.grad(contexts.dropped_GTBC, network_weights, context_gradients)

    def output() -> None:
        losses_G = model.losses(hidden, model.output_weight(), rows, masks)
        torch.autograd.grad(losses_G.sum(), [hidden, embedding, *output_weights])

    return network, output


def _optimiser(trainers: Sequence[Trainer], weights: Weights, window: Window) -> Callable[[], None]:
    update, device = StackedUpdate(trainers, weights), weights["embedding_VD"].device
    rates = torch.tensor(update.rates([window] * len(trainers)), dtype=torch.float64, device=device)
    gradients = [(weight, torch.zeros_like(weight)) for weight in weights if weight.requires_grad]

    def optimiser() -> None:
        for weight, gradient in gradients:
            weight.grad = gradient
        update.step(rates.view(-1, len(trainers)))

    return optimiser


def _capture(function: Callable[[], None], graphs: Graphs) -> Callable[[], None]:
    graphs.run(function)
    return graphs.captured(function)


def stacked_contexts(
    models: Sequence[LanguageModel],
    tokens_GTB: Tensor,
    lengths: Sequence[int],
    context_gradients: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return contexts G x T x B x C of models without dropout, and gradients of network weights."""
    weights = Weights.shared_by(models)
    model = stacked_model(models, weights)
    states = stacked_states([member.zero_state(tokens_GTB.shape[2]) for member in models])
    contexts = model.contexts(tokens_GTB, states, torch.tensor(lengths, device=tokens_GTB.device))
    network_weights = {
        name: weight for name, _, weight in weights.named() if not name.startswith(OUTPUT)
    }
    gradients = torch.autograd.grad(
        contexts.dropped_GTBC, list(network_weights.values()), context_gradients
    )
    return contexts.dropped_GTBC.detach(), dict(zip(network_weights, gradients, strict=True))


def stacked_losses(
    models: Sequence[LanguageModel], hidden_GNC: Tensor, targets_GN: Tensor, lengths: Sequence[int]
) -> dict[str, Tensor]:
    """Return each model's loss without dropout, and gradients by name; axis 0 is the model.

    Model g reads the first `lengths[g]` rows of `hidden_GNC`, whose gradient is named "hidden".
    """
    weights = Weights.shared_by(models)
    model, embedding = stacked_model(models, weights), weights["embedding_VD"]
    rows = torch.arange(hidden_GNC.shape[1], device=embedding.device)
    weights_GN = torch.stack([(rows < length).float() / length for length in lengths])
    hidden = hidden_GNC.clone().requires_grad_()
    losses_G = model.losses(
        hidden.unsqueeze(2), model.output_weight(), (targets_GN, weights_GN), {}
    )
    parameters = {"hidden": hidden, "embedding_VD": embedding}
    parameters |= {
        name: weight
        for name, _, weight in weights.named()
        if name.startswith(OUTPUT) and weight.requires_grad
    }
    gradients = torch.autograd.grad(losses_G.sum(), list(parameters.values()))
    return {"loss": losses_G.detach()} | dict(zip(parameters, gradients, strict=True))
