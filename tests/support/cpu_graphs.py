"""CUDA graphs simulated on a CPU: operations are recorded, then replayed on the same tensors.

A replay cannot repeat Python decisions, reads of values, random draws or tensors from the host, so
recording refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

READS = {"_local_scalar_dense", "is_nonzero", "nonzero", "equal", "masked_select", "_unique2"}
DRAWS = {
    "bernoulli",
    "bernoulli_",
    "normal",
    "normal_",
    "uniform_",
    "random_",
    "rand",
    "randn",
    "randperm",
}
FROM_HOST = {"lift_fresh", "lift"}


class NotForGraphsError(Exception):
    pass


class _Refusing(TorchDispatchMode):
    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = func.overloadpacket.__name__
        if name in READS | DRAWS | FROM_HOST:
            raise NotForGraphsError(name)
        return self.run(func, args, dict(kwargs or {}))

    def run(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return func(*args, **kwargs)


class _Recording(_Refusing):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Callable[[], None]] = []
        self.before: list[tuple[Tensor, Tensor]] = []
        """Tensors that a recorded operation overwrites, with copies of their former values."""

    def run(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        for argument, declared in zip(args, func._schema.arguments, strict=False):
            self._keep(argument, declared)
        for declared in func._schema.arguments:
            self._keep(kwargs.get(declared.name), declared)
        results = func(*args, **kwargs)
        aliased = [result.alias_info is not None for result in func._schema.returns]

        def again() -> None:
            values = func(*args, **kwargs)
            for old, new, alias in zip(_listed(results), _listed(values), aliased, strict=False):
                if not alias:
                    old.copy_(new)

        self.operations.append(again)
        return results

    def _keep(self, argument: Any, declared: Any) -> None:
        if declared.alias_info is not None and declared.alias_info.is_write:
            self.before += [
                (tensor, tensor.clone())
                for tensor in tree_leaves(argument)
                if isinstance(tensor, Tensor)
            ]


def _listed(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, tuple | list) else [results]


class CpuGraphs:
    """Replaces `trainables.device.Graphs`; counts eager runs, captures and replays."""

    def __init__(self) -> None:
        self.as_it_stands = self.captures = self.replays = 0

    def run(self, work: Callable[[], None]) -> None:
        self.as_it_stands += 1
        with _Refusing():  # type: ignore[no-untyped-call]
            work()

    def captured(self, work: Callable[[], None]) -> Callable[[], None]:
        self.captures += 1
        recording = _Recording()
        with recording:
            work()
        for tensor, before in reversed(recording.before):
            tensor.detach().copy_(before)

        @torch.no_grad()
        def replay() -> None:
            self.replays += 1
            for operation in recording.operations:
                operation()

        return replay
