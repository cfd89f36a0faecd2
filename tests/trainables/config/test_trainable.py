from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.command import ROOT
from trainables.config import Trainable, code_of, import_file, read_config
from trainables.errors import UserError

HEAD = """import enum, pathlib, typing
from pydantic import BaseModel
from trainables.config import Trainable
"""
TRAIN = "\n    def train(self, trial): return {'seen': repr(self)}\n"
WORKER = """import json, pickle, sys
from trainables.config import load_code, read_config
codes, contents = pickle.load(open(sys.argv[1], "rb"))
for code in codes:
    load_code(code)
for content in contents:
    config = read_config(content)
    print(json.dumps([config.trial_id, config.train(None)["seen"]]))
"""


def module(folder: Path, text: str, **files: str) -> ModuleType:
    """Return the module of `text`, next to other `files`, whose names have dots for folders."""
    for name, content in {"own": text, **files}.items():
        path = folder / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + content)
        sys.modules.pop(name.removesuffix(".__init__"), None)
    return import_file(folder / "own.py")


def in_worker(folder: Path, *configs: Trainable) -> list[list[str]]:
    """Return trial ids and settings in a process that has none of the files."""
    parcel = folder / "parcel"
    contents = [config.model_dump(mode="json") for config in configs]
    parcel.write_bytes(pickle.dumps((code_of(configs), contents)))
    command = [sys.executable, "-c", WORKER, str(parcel)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


def expected(*configs: Trainable) -> list[list[str]]:
    return [[config.trial_id, repr(config)] for config in configs]


MLP = f"class Mlp(Trainable):\n    width: int = 3{TRAIN}"


def test_every_part_of_identity_counts(tmp_path: Path) -> None:
    first = module(tmp_path / "a", MLP).Mlp()
    moved = module(tmp_path / "b", MLP).Mlp()
    other_class = module(tmp_path / "c", MLP.replace("Mlp", "Net")).Net()
    other_file = module(tmp_path / "d", MLP + "# changed\n").Mlp()
    trials = [first, type(first)(width=4), type(first)(seed=2), other_class, other_file]
    assert len({trial.trial_id for trial in trials}) == len(trials)
    assert moved.trial_id == first.trial_id


def test_settings_of_all_types_travel(tmp_path: Path) -> None:
    code = module(
        tmp_path,
        "class Color(enum.Enum):\n    RED = 'red'\n    BLUE = 'blue'\n"
        "class Optimizer(BaseModel):\n    name: typing.Literal['adam', 'sgd'] = 'adam'\n"
        "    betas: tuple[float, ...] = (0.9, 0.99)\n"
        "class Mlp(Trainable):\n    width: int | None = None\n    color: Color = Color.RED\n"
        "    path: pathlib.Path = pathlib.Path('x')\n    optimizer: Optimizer = Optimizer()\n"
        f"    layers: list[int] = [1, 2]{TRAIN}",
    )
    trials = [code.Mlp(), code.Mlp(color=code.Color.BLUE).with_values({"optimizer.name": "sgd"})]
    assert trials[1].optimizer.name == "sgd"
    assert in_worker(tmp_path, *trials) == expected(*trials)
    for values in ({"optimizer.name": "adm"}, {"optimizer.nam": "sgd"}, {"width": "wide"}):
        with pytest.raises(UserError, match=next(iter(values))):
            trials[0].with_values(values)


def test_classes_of_one_file_travel(tmp_path: Path) -> None:
    text = f"{MLP}class Wide(Mlp):\n    depth: int = 2{TRAIN}"
    code = module(tmp_path, text)
    trials = [code.Mlp(), code.Wide(width=9)]
    assert in_worker(tmp_path, *trials) == expected(*trials)
    assert [trial.sha256 for trial in trials] == [trials[0].sha256] * 2


def test_package_travels_whole(tmp_path: Path) -> None:
    def trial_of(factor: int, folder: str) -> Trainable:
        source = MLP.replace("Trainable)", "Trainable, code='parts')").replace("repr", "show")
        package = {"parts.__init__": "", "parts.sizes": f"factor = {factor}\n"}
        package["parts.shown"] = "from .sizes import factor\ndef show(x): return f'{factor} {x!r}'"
        for name in [name for name in sys.modules if name.partition(".")[0] == "parts"]:
            del sys.modules[name]
        sys.path[:] = [path for path in sys.path if not path.startswith(str(tmp_path))]
        text = f"from parts.shown import show\n{source}"
        trial: Trainable = module(tmp_path / folder, text, **package).Mlp()
        return trial

    before, after = trial_of(2, "a"), trial_of(3, "b")
    assert before.trial_id != after.trial_id
    for factor, trial in ((2, before), (3, after)):
        assert in_worker(tmp_path, trial) == [[trial.trial_id, f"{factor} {trial!r}"]]


def test_neighbour_with_the_class_travels(tmp_path: Path) -> None:
    def trial_of(comment: str) -> Trainable:
        study = f"from neighbour import Mlp  # {comment}\n"
        trial: Trainable = module(tmp_path, study, neighbour=MLP).Mlp()
        return trial

    trial = trial_of("a")
    assert in_worker(tmp_path, trial) == expected(trial)
    assert trial_of("b").trial_id == trial.trial_id


def test_class_in_package_needs_a_subclass(tmp_path: Path) -> None:
    study = "from kinds.models import Mlp\nclass Own(Mlp, code='kinds'): pass\n"
    package = {"kinds.__init__": "", "kinds.models": MLP}
    code = module(tmp_path, study, **package)
    with pytest.raises(UserError, match="subclass"):
        code.Mlp()
    assert in_worker(tmp_path, code.Own()) == expected(code.Own())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("class Mlp(Trainable):\n    width = 3", "width = 3"),
        ("import torch\nclass Mlp(Trainable):\n    start: torch.Tensor", "type"),
        ("class Mlp(Trainable):\n    names: set[str] = {'a'}\nread(Mlp())", "tuple"),
        *(
            (f"class Mlp(Trainable):\n    {name}: str = 'a'", name)
            for name in ("epoch", "kind", "sha256", "schema_version", "operations", "train")
        ),
        ("def make():\n    class Mlp(Trainable):\n        pass\n    return Mlp\nmake()()", "level"),
        ("import other\nclass Mlp(Trainable):\n    pass", "other"),
        ("from . import other\nclass Mlp(Trainable):\n    pass", "Error|folder"),
        ("class Mlp(Trainable, code='absent'):\n    pass", "absent"),
        ("class Mlp(Trainable, code='../x'):\n    pass", "outside"),
        ("class Mlp(Trainable)\n    pass", "line 4"),
    ],
)
@pytest.mark.filterwarnings("ignore:Field name")
def test_bad_class_is_one_sentence(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "other.py").touch()
    read = "def read(config): read_config(config.model_dump(mode='json'))\n"
    head = "from trainables.config import read_config\n" if "read(" in text else ""
    with pytest.raises(UserError, match=word) as caught:
        module(tmp_path, (head + read if head else "") + text)
    assert "\n" not in str(caught.value)


def test_config_without_its_file_is_readable(tmp_path: Path) -> None:
    trial = module(tmp_path, MLP).Mlp(width=7)
    content = trial.model_dump(mode="json") | {"sha256": "0" * 64}
    assert type(read_config(content | {"sha256": trial.sha256, "trainable": "enum"})) is not type(
        trial
    )
    unloaded = read_config(content)
    assert type(unloaded) is not type(trial)
    assert unloaded.model_dump(mode="json") == content
    assert unloaded.trial_id != trial.trial_id


def test_trial_alone_takes_its_package(tmp_path: Path) -> None:
    text = MLP.replace("Trainable)", "Trainable, code='bits')").replace("repr(self)", "amount")
    package = {"bits.__init__": "amount = 5\n"}
    trial = module(tmp_path, f"from bits import amount\n{text}", **package).Mlp()
    (tmp_path / "config.json").write_text(trial.model_dump_json())
    command = [sys.executable, "-m", "trainables", str(tmp_path / "config.json")]
    command += ["--code", str(tmp_path / "own.py"), "--directory", str(tmp_path / "trial")]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["measurements"]["user@1"] == {"seen": 5}
