"""A user's own layer: seeded by its trial, resumed bit for bit, and refused with a reason where it
cannot be kept."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.support import tiny_trial as tiny
from trainables.config import CustomConfig, TextFile, output_layer
from trainables.errors import UserError
from trainables.measurements import context_vectors, log_probability_matrix
from trainables.output_layers import LayerShape, build_output_layer, load_layers
from trainables.runtime import Runtime
from trainables.training import Trainer
from trainables.trial_folder import load_tensors, save_tensors

LAYER = """
import torch
from torch import nn
from trainables.output_layers import PointwiseSoftmax

class Projected(PointwiseSoftmax):
    def __init__(self, shape):
        super().__init__(shape)
        self.up = nn.Linear(shape.context_width, shape.embedding_width)
        self.centres = torch.linspace(-1, 1, 4).tolist()

    def loss(self, hidden_TBC, weight_VD, targets_N, masks=None):
        dropped = nn.functional.dropout(self.up(hidden_TBC), 0.3, self.training)
        return super().loss(dropped, weight_VD, targets_N, masks)

class Counting(PointwiseSoftmax):
    def __init__(self, shape):
        super().__init__(shape)
        self.register_buffer("seen", torch.zeros(()))

class Unnormalised(PointwiseSoftmax):
    def log_probabilities(self, hidden_NC, weight_VD):
        return hidden_NC @ weight_VD.T

class NoLayer:
    pass

def make():
    class Inner(PointwiseSoftmax):
        pass
    return Inner
"""
SHAPE = LayerShape(vocabulary_size=7, embedding_width=3, context_width=3)


def imported(folder: Path, text: str = LAYER) -> ModuleType:
    path = folder / "own_layers.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"own_layers_{folder.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_layer_starts_from_the_seed_and_resumes(tmp_path: Path) -> None:
    config = tiny.trial(output_layer=CustomConfig.of(imported(tmp_path).Projected))
    straight, resumed, other = (
        Trainer(config.model_copy(update={"seed": seed}), tiny.corpus(), Runtime())
        for seed in (7, 7, 8)
    )
    first, second, third = (
        t.model.get_parameter("output.up.weight") for t in (straight, resumed, other)
    )
    assert torch.equal(first, second) and not torch.equal(first, third)
    for _ in range(3):
        straight.step()
    save_tensors(tmp_path / "state", *straight.snapshot())
    for _ in range(3):
        straight.step()
    resumed.restore(*load_tensors(tmp_path / "state"))
    for _ in range(3):
        resumed.step()
    for (name, one), two in zip(
        straight.model.named_parameters(), resumed.model.parameters(), strict=True
    ):
        assert torch.equal(one, two), name


@pytest.mark.parametrize(("name", "sentence"), [("Counting", "buffers"), ("NoLayer", "subclass")])
def test_layers_that_are_refused(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        build_output_layer(CustomConfig.of(getattr(imported(tmp_path), name)), SHAPE)
    with pytest.raises(UserError, match="at the top"):
        CustomConfig.of(imported(tmp_path).make())


@pytest.mark.parametrize(
    "line", ["import helper", "from helper import GAIN", "    from helper.part import x"]
)
def test_file_that_needs_its_neighbour(tmp_path: Path, line: str) -> None:
    (tmp_path / "helper.py").write_text("GAIN = 1.0\n")
    text = LAYER + f"\ndef later():\n    {line.strip()}\n"
    with pytest.raises(UserError, match="imports helper"):
        CustomConfig.of(imported(tmp_path, text).Projected)


def test_file_beside_the_project() -> None:
    path = Path(__file__).parents[3] / "own_layers.py"
    output_layer._refuse_neighbours(path, LAYER)
    with pytest.raises(UserError, match="imports sweep"):
        output_layer._refuse_neighbours(path, LAYER + "import sweep\n")


@pytest.mark.parametrize("text", ["1 +", "raise ValueError('no')", "import sys; sys.exit(3)"])
def test_file_that_cannot_be_run(text: str) -> None:
    with pytest.raises(UserError, match=r"broken\.py"):
        load_layers(TextFile(name="broken.py", text=text))


def test_probabilities_must_sum_to_one(tmp_path: Path) -> None:
    config = tiny.trial(output_layer=CustomConfig.of(imported(tmp_path).Unnormalised))
    model = Trainer(config, tiny.corpus(), Runtime()).model
    contexts = context_vectors(model, tiny.corpus().test, window=70)
    with pytest.raises(UserError, match="must sum to one"):
        log_probability_matrix(model, contexts)
