"""One update of all models of a stack: clipped gradients, SGD, Adam or AdamW.

Every model has its own learning rate, weight decay, clipping threshold and step count. P is the
number of trained weight tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import SGD, AdamW

from trainables.device import runs_triton
from trainables.stack.weights import Weights
from trainables.training import ADAM_STATE, Trainer, Window

EPSILON = 1e-8
"""Constant in Adam's denominator (Kingma and Ba 2015)."""


class ModelNumbers(NamedTuple):
    """Each model's clipping factor, learning rate and weight decay for one weight tensor."""

    shrink_G: Tensor
    rate_G: Tensor
    decay_G: Tensor


class Adam(NamedTuple):
    """Adam's state of one weight tensor: means of the gradient and of its square.

    The divisors correct the means' bias: 1 - beta ** steps, per model.
    """

    mean: Tensor
    square: Tensor
    mean_divisor_G: Tensor
    square_divisor_G: Tensor
    betas: tuple[float, float]


@dataclass(frozen=True)
class _Weight:
    tensor: Tensor
    part: slice
    rates: list[float]
    """Base learning rate of every model; 0 for a model without this weight."""
    decay_G: Tensor
    moments: dict[str, Tensor]

    @property
    def gradient(self) -> Tensor:
        assert self.tensor.grad is not None
        return self.tensor.grad


class StackedUpdate:
    """Updates the weights of all models from their gradients."""

    def __init__(self, trainers: Sequence[Trainer], weights: Weights) -> None:
        self._trainers = trainers
        like = weights["embedding_VD"]
        norms = [trainer.config.training.gradient_clip_norm for trainer in trainers]
        self._clip_G = like.new_tensor(norms)
        optimizer = trainers[0].optimizer
        self._betas = None if isinstance(optimizer, SGD) else optimizer.defaults["betas"]
        self._decoupled_decay = isinstance(optimizer, AdamW)
        self._weights = [
            self._weight(name, part, tensor)
            for name, part, tensor in weights.named()
            if tensor.requires_grad
        ]

    def _weight(self, name: str, part: slice, tensor: Tensor) -> _Weight:
        groups = [_group(trainer, name) for trainer in self._trainers[part]]
        front, back = part.start, len(self._trainers) - part.stop
        return _Weight(
            tensor,
            part,
            [*[0.0] * front, *(group["base_lr"] for group in groups), *[0.0] * back],
            tensor.new_tensor([group["weight_decay"] for group in groups]),
            {} if self._betas is None else _stacked_moments(self._trainers[part], name),
        )

    @property
    def weights(self) -> int:
        """Return the number P of trained weight tensors."""
        return len(self._weights)

    def rates(self, windows: Sequence[Window]) -> list[float]:
        """Return the step's P x G learning rates as one list; 0 for a model without the weight."""
        pairs = list(zip(self._trainers, windows, strict=True))
        return [
            trainer.rate(window, rate)
            for weight in self._weights
            for (trainer, window), rate in zip(pairs, weight.rates, strict=True)
        ]

    @torch.no_grad()
    def step(self, rates_PG: Tensor) -> None:
        """Update all weights from the gradients of one window per model; drop the gradients."""
        squares_G = torch.zeros_like(self._clip_G)
        for weight in self._weights:
            squares_G[weight.part] += torch.linalg.vector_norm(
                weight.gradient.flatten(1), dim=1
            ).square()
        shrink_G = (self._clip_G / (squares_G.sqrt() + 1e-6)).clamp(max=1.0)
        update_ = _update_of(self._clip_G)
        for weight, rates_G in zip(self._weights, rates_PG, strict=True):
            part = weight.part
            numbers = ModelNumbers(shrink_G[part], rates_G[part], weight.decay_G)
            adam = None if self._betas is None else _next_moments(weight.moments, self._betas)
            update_(
                weight.tensor, weight.gradient, numbers, adam, decoupled_decay=self._decoupled_decay
            )
        self.drop_gradients()

    def drop_gradients(self) -> None:
        """Drop the gradients, also those of an interrupted step."""
        for weight in self._weights:
            weight.tensor.grad = None


def _next_moments(moments: dict[str, Tensor], betas: tuple[float, float]) -> Adam:
    step_G, mean, square = (moments[key] for key in ADAM_STATE)
    step_G += 1
    mean_divisor_G, square_divisor_G = (1 - beta ** step_G.to(mean.dtype) for beta in betas)
    return Adam(mean, square, mean_divisor_G, square_divisor_G, betas)


def _update_of(like: Tensor) -> Callable[..., None]:
    if like.dtype == torch.float32 and runs_triton(like.device):
        from trainables.stack import update_kernels  # Triton: only on a GPU

        return update_kernels.update_
    return _update_


def _update_(
    weight: Tensor,
    gradient: Tensor,
    numbers: ModelNumbers,
    adam: Adam | None,
    *,
    decoupled_decay: bool,
) -> None:
    shrink, rate, decay = (_column(number_G, weight) for number_G in numbers)
    gradient.mul_(shrink)
    if decoupled_decay:
        weight.mul_(1 - rate * decay)
    else:
        gradient.addcmul_(weight, decay)
    change = gradient if adam is None else _adam_change(adam, gradient)
    weight.sub_(change.mul_(rate))


def _adam_change(adam: Adam, gradient: Tensor) -> Tensor:
    mean, square, mean_divisor_G, square_divisor_G, betas = adam
    mean.lerp_(gradient, 1 - betas[0])
    square.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    return (
        mean
        / _column(mean_divisor_G, mean)
        / (square / _column(square_divisor_G, mean)).sqrt_().add_(EPSILON)
    )


def _stacked_moments(trainers: Sequence[Trainer], name: str) -> dict[str, Tensor]:
    # Each optimizer gets views of its model's rows.
    parameters = [trainer.model.get_parameter(name) for trainer in trainers]
    states = [trainer.optimizer.state for trainer in trainers]
    old_moments = [
        state.get(p) or _no_moments(p) for state, p in zip(states, parameters, strict=True)
    ]
    stacked = {key: torch.stack([moments[key] for moments in old_moments]) for key in ADAM_STATE}
    for row, (state, parameter) in enumerate(zip(states, parameters, strict=True)):
        state[parameter] = {key: tensor[row] for key, tensor in stacked.items()}
    return stacked


def _no_moments(parameter: Tensor) -> dict[str, Tensor]:
    step = torch.zeros((), dtype=torch.float32, device=parameter.device)
    zeros = torch.zeros_like(parameter, requires_grad=False)
    return dict(zip(ADAM_STATE, (step, zeros, zeros), strict=True))


def _group(trainer: Trainer, name: str) -> dict[str, Any]:
    parameter = trainer.model.get_parameter(name)
    groups = trainer.optimizer.param_groups
    return next(group for group in groups if any(p is parameter for p in group["params"]))


def _column(values_G: Tensor, like: Tensor) -> Tensor:
    return values_G.view(-1, *[1] * (like.dim() - 1)).to(like.dtype)
