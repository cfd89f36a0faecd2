"""PyTorch's SGD and Adam without what surrounds them for `torch.compile`.

Every optimizer of PyTorch imports its compiler at the first step, with SymPy and 800 modules: 2 s of each worker
process, and nothing here is compiled. The updates are PyTorch's own, bit by bit.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.optim import SGD, Adam, Optimizer
from typing_extensions import override

_add_param_group = inspect.unwrap(Optimizer.add_param_group)
_zero_grad = inspect.unwrap(Optimizer.zero_grad)
_sgd_step = inspect.unwrap(SGD.step)
_adam_step = inspect.unwrap(Adam.step)


class _WithoutCompiler(Optimizer):
    @override
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        _add_param_group(self, param_group)

    @override
    def zero_grad(self, set_to_none: bool = True) -> None:
        _zero_grad(self, set_to_none)


class EagerSGD(_WithoutCompiler, SGD):
    """`torch.optim.SGD`."""

    @override
    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # closures are for other methods
        """Update every parameter by its gradient."""
        _sgd_step(self)


class EagerAdam(_WithoutCompiler, Adam):
    """`torch.optim.Adam`."""

    @override
    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every parameter by its gradient and the moments of those before."""
        _adam_step(self)
