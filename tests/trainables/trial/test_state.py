from __future__ import annotations

import copy
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trainables.errors import UserError
from trainables.trial.state import restore, snapshot
from trainables.trial_folder import load_tensors, save_tensors

SEED = random.randrange(10**6)


def through_a_file(objects: dict[str, Any], targets: dict[str, Any], path: Path) -> None:
    tensors, state = snapshot(objects)
    save_tensors(path, tensors, {"objects": state})
    tensors, content = load_tensors(path)
    restore(targets, tensors, content["objects"])


def anything(chance: random.Random, depth: int = 3) -> Any:
    shape = [chance.randrange(4) for _ in range(chance.randrange(3))]
    values = [
        None, True, chance.getrandbits(200), chance.gauss(0, 1), -0.0, math.inf, "é\ud800\n",
        np.float32(chance.random()), np.int8(-3), np.bool_(1), np.float64("nan"),
        torch.randn(shape).to(chance.choice([torch.float64, torch.bfloat16, torch.int64])),
        np.asarray(np.random.rand(*shape)).astype(chance.choice(["f2", "f8", "u2", "c8", "?"])),
        torch.randn(4, 4).T, np.random.rand(4, 4)[::-2],
    ]  # fmt: skip
    if not depth or chance.random() < 0.3:
        return chance.choice(values)
    parts = [anything(chance, depth - 1) for _ in range(chance.randrange(5))]
    keys = chance.sample(["a", "a.b", "", 1, "1", None, (1, "x"), 0.5, False], len(parts))
    return chance.choice([parts, tuple(parts), dict(zip(keys, parts, strict=True))])


def described(value: Any) -> Any:
    """Return types, shapes and bits, so that NaN equals NaN and 0.0 does not equal -0.0."""
    if isinstance(value, torch.Tensor):
        content = value.detach().contiguous().view(-1).view(torch.uint8) if value.numel() else ()
        return value.dtype, tuple(value.shape), bytes(content)
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, dict):
        return dict, [(described(key), described(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [described(part) for part in value]
    return type(value), repr(value)


def test_random_structures_return_the_same(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    for _ in range(60):
        objects = {"one": {"x": anything(chance)}, "two": [anything(chance) for _ in range(6)]}
        before, targets = described(copy.deepcopy(objects)), {"one": {"y": 1}, "two": [0]}
        through_a_file(objects, targets, tmp_path / "state")
        assert described(targets) == before, f"seed {SEED}"


def test_equal_arrays_and_generators_stay_apart(tmp_path: Path) -> None:
    def new_objects(seed: int) -> dict[str, Any]:
        return {
            "first": np.full(50, float(seed)),
            "second": np.full(50, seed + 1.0),
            "torch_a": torch.Generator().manual_seed(seed),
            "torch_b": torch.Generator().manual_seed(seed + 1),
            "numpy": np.random.default_rng(seed),
            "twister": np.random.Generator(np.random.MT19937(seed)),
            "old": np.random.RandomState(seed),
            "python": random.Random(seed),
            "tensor": torch.full((3,), float(seed)),
        }

    def draws(objects: dict[str, Any]) -> list[Any]:
        return [
            *(torch.rand(2, generator=objects[name]).tolist() for name in ("torch_a", "torch_b")),
            *(list(objects[name].normal(size=3)) for name in ("numpy", "twister", "old")),
            objects["python"].gauss(0, 1),
            *(objects[name].tolist() for name in ("first", "second", "tensor")),
        ]

    objects, targets = new_objects(3), new_objects(7)
    draws(objects)  # in the middle of their sequences
    through_a_file(objects, targets, tmp_path / "state")
    assert draws(targets) == draws(objects)


def test_tied_weights_are_stored_once(tmp_path: Path) -> None:
    def new_objects() -> torch.nn.ModuleList:
        layers = torch.nn.ModuleList([torch.nn.Linear(50, 50), torch.nn.Linear(50, 50)])
        layers[1].weight = layers[0].weight
        return layers

    model, target = new_objects(), new_objects()
    through_a_file({"model": model}, {"model": target}, tmp_path / "state")
    assert (tmp_path / "state").stat().st_size < 4 * 50 * 50 * 1.5
    assert target[0].weight is target[1].weight
    for old, new in zip(model.state_dict().values(), target.state_dict().values(), strict=True):
        assert torch.equal(old, new)


@pytest.mark.parametrize(
    "value",
    [{1, 2}, b"x", np.array([None]), np.array(["a"]), object(), 1 + 2j, np.zeros(2, "c16")],
)
def test_other_content_is_refused(value: object) -> None:
    with pytest.raises(UserError, match=r"box\.inner"):
        snapshot({"box": {"inner": value}})


@pytest.mark.parametrize("value", [3, "x", None, object(), (1, 2)])
def test_objects_that_cannot_change_are_refused(value: object) -> None:
    with pytest.raises(UserError, match="in place"):
        snapshot({"box": value})


def test_other_names_are_refused() -> None:
    tensors, state = snapshot({"model": {}})
    with pytest.raises(UserError, match="holds model, not net"):
        restore({"net": {}}, tensors, state)
