"""Training state of any objects, as tensors and JSON data."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainables.device import global_random_states, set_global_random_states
from trainables.errors import UserError
from trainables.trial_folder import Snapshot

METHODS = (
    ("state_dict", "load_state_dict"),
    ("get_state", "set_state"),
    ("getstate", "setstate"),
)
"""Methods that get and set the state of modules and optimizers, of random generators of torch and
numpy, and of Python's."""


def snapshot(objects: Mapping[str, Any]) -> Snapshot:
    """Return the state of the objects by name.

    Raises UserError for a state that is not made of tensors, arrays, numbers, texts, lists, tuples
    and dicts.
    """
    tensors: dict[str, Tensor] = {}
    # Each tensor is kept with its name, so that no other one gets its memory meanwhile.
    stored: dict[tuple[Any, ...], tuple[str, Tensor]] = {}

    def encoded(value: Any, path: str) -> Any:
        if isinstance(value, np.ndarray | np.number | np.bool_):
            kind = "array" if isinstance(value, np.ndarray) else "scalar"
            with suppress(TypeError):
                return {kind: encoded(torch.from_numpy(np.array(value)), path)}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or isinstance(value, int | float | str):
            return value
        if isinstance(value, Tensor) and value.dtype != torch.complex128:
            # Tied weights are stored once.
            key = (value.data_ptr(), value.dtype, tuple(value.shape), value.stride())
            name = f"{len(tensors)}"
            if value.numel():
                name, _ = stored.setdefault(key, (name, value))
            if name not in tensors:
                tensors[name] = value.detach().clone(memory_format=torch.contiguous_format)
            return {value.device.type: name}
        if isinstance(value, Mapping):
            items = [[encoded(k, path), encoded(v, f"{path}.{k}")] for k, v in value.items()]
            return {"dict": items}
        if isinstance(value, list | tuple):
            items = [encoded(item, f"{path}.{index}") for index, item in enumerate(value)]
            return {"tuple" if type(value) is tuple else "list": items}
        raise UserError(
            f"trial.restore: {path} holds a {type(value).__name__}. Checkpoints hold tensors, "
            "arrays, numbers, texts, lists, tuples and dicts."
        )

    return tensors, {name: encoded(_state_of(value, name), name) for name, value in objects.items()}


def restore(
    objects: Mapping[str, Any], tensors: Mapping[str, Tensor], state: Mapping[str, Any]
) -> None:
    """Give the objects their state in a `snapshot`. Raises UserError if the names differ."""
    if objects.keys() != state.keys():
        raise UserError(
            f"trial.restore: the checkpoint holds {', '.join(state) or 'nothing'}, not "
            f"{', '.join(objects) or 'nothing'}. Restore the same names in every attempt."
        )
    for name, target in objects.items():
        _set_state(target, _decoded(state[name], tensors))


def _decoded(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    match kind:
        case "float":
            return float(content)
        case "cpu" | "cuda":
            return tensors[content].to(kind if torch.cuda.is_available() else "cpu")
        case "array":
            return _decoded(content, tensors).numpy()
        case "scalar":
            return _decoded(content, tensors).numpy()[()]
        case "dict":
            return {_decoded(key, tensors): _decoded(item, tensors) for key, item in content}
        case _:
            items = [_decoded(item, tensors) for item in content]
            return tuple(items) if kind == "tuple" else items


def _state_of(value: Any, name: str) -> Any:
    for getter, setter in METHODS:
        if hasattr(value, setter):
            return getattr(value, getter)()
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, Tensor | np.ndarray | dict | list):
        return value
    raise UserError(
        f"trial.restore: {name} is a {type(value).__name__}, which cannot be restored in place. "
        "Pass modules, optimizers, schedulers, tensors, arrays, random generators, dicts or lists; "
        "put numbers into a dict."
    )


@torch.no_grad()
def _set_state(target: Any, state: Any) -> None:
    for _, setter in METHODS:
        if hasattr(target, setter):
            getattr(target, setter)(state)
            return
    if isinstance(target, np.random.Generator):
        target.bit_generator.state = state
    elif isinstance(target, Tensor | np.ndarray):
        target[...] = state
    elif isinstance(target, dict):
        target.clear()
        target.update(state)
    else:
        target[:] = state


class GlobalRandom:
    """States of the global random generators of Python, numpy and torch."""

    def __init__(self, device: str) -> None:
        self._device = device

    def seed(self, seed: int) -> None:
        """Seed all generators."""
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)

    def state_dict(self) -> dict[str, Any]:
        """Return the states."""
        states = {"python": random.getstate(), "numpy": np.random.get_state()}
        return {**states, "torch": global_random_states(self._device)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the states."""
        random.setstate(state["python"])
        np.random.set_state(state["numpy"])
        set_global_random_states(state["torch"], self._device)
