from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import ROOT, results_table, sweep
from trainables.__main__ import main
from trainables.config import user_code

SMOKE = ("--scale", "smoke", "--max-concurrent", "1")
DRY = ("--scale", "smoke", "--dry-run", "--format", "json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the two files shown in docs/output-layers.md."""
    page = (ROOT / "docs" / "output-layers.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for name in ("my_layer.py", "my_layer_study.py"):
        [text] = [block for block in blocks if block.startswith(f'"""{name}')]
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def config(folder: Path) -> Path:
    plan = json.loads(sweep(folder / "my_layer_study.py", *DRY).stdout)["trials"]
    (folder / "config.json").write_text(json.dumps(plan[0]))
    return folder / "config.json"


@pytest.fixture
def alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    def run(config: Path, *arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "path", sys.path.copy())
        for registry in ("_modules", "_code"):
            monkeypatch.setattr(user_code, registry, {})
        status = main([str(config), "--directory", str(folder / "alone"), *arguments])
        output = capsys.readouterr()
        return status, output.err if status else output.out

    return run


@pytest.mark.usefixtures("one_ray")
def test_layer_from_docs_trains(
    folder: Path, config: Path, alone: Callable[..., tuple[int, str]]
) -> None:
    study, storage = folder / "my_layer_study.py", folder / "results"
    answer = sweep(study, *SMOKE, "--storage", storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    rows = results_table(storage, str(study))
    assert [row["name"] for row in rows] == [f"WaveSoftmax a={a} seed=141" for a in (0.1, 0.3, 0.5)]
    assert {row["state"] for row in rows} == {"done"}
    assert len({row["test_perplexity"] for row in rows}) == 3
    status, result = alone(config, "--code", str(folder / "my_layer.py"))
    assert status == 0, result
    measurements = json.loads(result)["measurements"]
    perplexity = measurements["perplexity@1"]["test_perplexity"]
    assert perplexity == pytest.approx(float(rows[0]["test_perplexity"]))
    parameters = json.loads(config.read_text())["parameters"]
    assert measurements["training@1"]["parameters"] == parameters


def test_changed_layer_makes_new_trials(folder: Path) -> None:
    study, layer = folder / "my_layer_study.py", folder / "my_layer.py"
    before = {trial["trial_id"] for trial in json.loads(sweep(study, *DRY).stdout)["trials"]}
    layer.write_text(layer.read_text().replace("torch.tanh", "torch.sigmoid"))
    after = {trial["trial_id"] for trial in json.loads(sweep(study, *DRY).stdout)["trials"]}
    assert len(before) == len(after) == 3 and not before & after


@pytest.mark.parametrize(
    ("layers", "key_words"),
    [
        ((), "loaded: none"),
        (("--code", "nowhere.py"), "no such"),
        (("--code", "tests/support/output_layer_formulas.py"), "output_layer_formulas.py"),
    ],
)
def test_layer_in_unnamed_file_never_runs(
    config: Path, alone: Callable[..., tuple[int, str]], layers: tuple[str, ...], key_words: str
) -> None:
    status, error = alone(config, *layers)
    assert status == 2 and key_words in error


@pytest.mark.usefixtures("one_ray")
def test_error_names_line_of_layer(folder: Path, alone: Callable[..., tuple[int, str]]) -> None:
    layer, config, study = (folder / n for n in ("my_layer.py", "config.json", "my_layer_study.py"))
    good = "return logits + self.a * torch.tanh(logits)"
    text = layer.read_text().replace(good, "return logits[:, :3].view(7, -1)")
    layer.write_text(text)
    line = f"(my_layer.py, line {1 + text[: text.index('view(7')].count(chr(10))})"
    ran = sweep(study, *SMOKE, "--storage", folder / "results")
    assert ran.returncode == 1 and line in ran.stdout, ran.stderr
    (log,) = re.findall(r"\(traceback: (.*?)\)$", ran.stdout, re.MULTILINE)
    assert "3 trials failed" in ran.stdout and "view(7, -1)" in Path(log).read_text()
    config.write_text(json.dumps(json.loads(sweep(study, *DRY).stdout)["trials"][:1]))
    status, error = alone(config, "--code", str(layer))
    assert status == 2 and line in error


@pytest.mark.parametrize(
    ("setting", "changed", "key_words"),
    [("b=a", (), "{'b': 0.1}"), ("a=a", ("--set", "model.context_width=7"), "got 7")],
)
def test_plan_refuses_impossible_layer(
    folder: Path, setting: str, changed: tuple[str, ...], key_words: str
) -> None:
    study = folder / "my_layer_study.py"
    study.write_text(study.read_text().replace("a=a", setting))
    answer = sweep(study, *DRY, *changed)
    assert answer.returncode == 2 and key_words in answer.stderr
