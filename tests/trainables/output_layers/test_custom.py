from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support import tiny_trial as tiny
from trainables.config import CustomConfig, UserCode, load_code
from trainables.config.user_code import refuse_neighbours
from trainables.errors import UserError
from trainables.measurements import context_vectors, log_probability_matrix
from trainables.output_layers import LayerShape, build_output_layer
from trainables.runtime import Runtime
from trainables.training import Trainer

LAYER = """
import torch
from trainables.output_layers import PointwiseSoftmax

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


@pytest.mark.parametrize(("name", "sentence"), [("Counting", "buffers"), ("NoLayer", "subclass")])
def test_refused_layers(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        build_output_layer(CustomConfig.of(getattr(imported(tmp_path), name)), SHAPE)
    with pytest.raises(UserError, match="at the top"):
        CustomConfig.of(imported(tmp_path).make())


@pytest.mark.parametrize(
    "line", ["import helper", "from helper import GAIN", "    from helper.part import x"]
)
def test_file_importing_its_neighbour(tmp_path: Path, line: str) -> None:
    (tmp_path / "helper.py").write_text("GAIN = 1.0\n")
    text = LAYER + f"\ndef later():\n    {line.strip()}\n"
    with pytest.raises(UserError, match="imports helper"):
        CustomConfig.of(imported(tmp_path, text).Counting)


def test_file_next_to_the_project() -> None:
    path = Path(__file__).parents[3] / "own_layers.py"
    refuse_neighbours(path, LAYER)
    with pytest.raises(UserError, match="imports sweep"):
        refuse_neighbours(path, LAYER + "import sweep\n")


@pytest.mark.parametrize("text", ["1 +", "raise ValueError('no')", "import sys; sys.exit(3)"])
def test_broken_file(text: str) -> None:
    with pytest.raises(UserError, match=r"broken\.py"):
        load_code(UserCode(name="broken.py", text=text))


def test_probabilities_must_sum_to_one(tmp_path: Path) -> None:
    config = tiny.trial(output_layer=CustomConfig.of(imported(tmp_path).Unnormalised))
    model = Trainer(config, tiny.corpus(), Runtime()).model
    contexts = context_vectors(model, tiny.corpus().test, window=70)
    with pytest.raises(UserError, match="must sum to one"):
        log_probability_matrix(model, contexts)
