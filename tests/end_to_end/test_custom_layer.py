"""An output layer of the user's own, exactly as the docs show it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from tests.support.command import ROOT, environment, results_table, sweep
from trainables.__main__ import main
from trainables.config import output_layer
from trainables.output_layers import custom

SMOKE = ("--scale", "smoke", "--max-concurrent", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the two files of docs/output-layers.md."""
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "output-layers.md").read_text(), re.DOTALL
    )
    for name in ("my_layer.py", "my_layer_study.py"):
        (text,) = (block for block in blocks if block.startswith(f'"""{name}'))
        (tmp_path / name).write_text(text)
    return tmp_path


def run_alone(config: Path, folder: Path, *arguments: str) -> tuple[int, str]:
    """`python -m trainables` in this process, as if it had met no layer before: its status and
    standard error."""
    err = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(err):
        patch.setattr(custom, "_loaded", {})
        patch.setattr(output_layer, "_defined", {})
        status = main([str(config), "--directory", str(folder / "alone"), *arguments])
    return status, err.getvalue()


@pytest.mark.usefixtures("one_ray")
def test_the_layer_of_the_docs_runs_in_a_sweep_and_alone(folder: Path) -> None:
    layer = folder / "my_layer.py"
    assert len(layer.read_text().splitlines()) < 30
    study, storage = folder / "my_layer_study.py", folder / "results"
    answer = sweep(study, *SMOKE, "--storage", storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    rows = results_table(storage, str(study))
    assert [row["name"] for row in rows] == [f"WaveSoftmax a={a} seed=141" for a in (0.1, 0.3, 0.5)]
    assert {row["state"] for row in rows} == {"done"}
    assert len({row["test_perplexity"] for row in rows}) == 3
    assert "3 trials: 0 to run, 3 already done" in sweep(study, *SMOKE, "--storage", storage).stdout

    plan = json.loads(sweep(study, "--scale", "smoke", "--dry-run", "--format", "json").stdout)
    config = folder / "config.json"
    config.write_text(json.dumps(plan[0]))
    command = [
        "-m",
        "trainables",
        str(config),
        "--directory",
        str(folder / "alone"),
        "--layers",
        str(layer),
    ]
    alone = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment(), capture_output=True, check=True
    )
    measurements = json.loads(alone.stdout)["measurements"]
    assert measurements["perplexity@1"]["test_perplexity"] == pytest.approx(
        float(rows[0]["test_perplexity"])
    )
    assert measurements["training@1"]["parameters"] == plan[0]["parameters"]


def test_a_changed_layer_makes_other_trials(folder: Path) -> None:
    dry = (folder / "my_layer_study.py", "--scale", "smoke", "--dry-run", "--format", "json")
    before = {trial["trial_id"] for trial in json.loads(sweep(*dry).stdout)}
    layer = folder / "my_layer.py"
    layer.write_text(layer.read_text().replace("torch.tanh", "torch.sigmoid"))
    after = {trial["trial_id"] for trial in json.loads(sweep(*dry).stdout)}
    assert len(before) == len(after) == 3
    assert not before & after


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "this process was given none"),
        (("--layers", "nowhere.py"), "cannot be read"),
        (
            ("--layers", "tests/support/output_layer_formulas.py"),
            "was given output_layer_formulas.py",
        ),
    ],
)
def test_a_layer_whose_file_is_not_named_is_never_run(
    folder: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    plan = sweep(folder / "my_layer_study.py", "--scale", "smoke", "--dry-run", "--format", "json")
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(plan.stdout)[0]))
    status, error = run_alone(config, folder, *arguments)
    assert status == 2, error
    assert sentence in error


@pytest.mark.usefixtures("one_ray")
def test_a_layer_that_fails_in_training_is_named_with_its_line(folder: Path) -> None:
    layer = folder / "my_layer.py"
    text = layer.read_text().replace(
        "return logits + self.a * torch.tanh(logits)", "return logits[:, :3].view(7, -1)"
    )
    layer.write_text(text)
    line = 1 + text[: text.index("view(7")].count("\n")
    study = (folder / "my_layer_study.py", *SMOKE, "--storage", folder / "results")
    ran = sweep(*study)
    assert ran.returncode == 1, ran.stderr
    assert f"(my_layer.py, line {line})" in ran.stdout
    logs = re.findall(r"\(traceback: (.*?)\)$", ran.stdout, re.MULTILINE)
    assert len(logs) == 3 and all("view(7, -1)" in Path(log).read_text() for log in logs)
    config = folder / "config.json"
    config.write_text(sweep(*study, "--dry-run", "--format", "json").stdout)
    status, error = run_alone(config, folder, "--layers", str(layer))
    assert (status, "is a list of 3 trials" in error) == (2, True)
    config.write_text(json.dumps(json.loads(config.read_text())[:1]))
    status, error = run_alone(config, folder, "--layers", str(layer))
    assert (status, f"(my_layer.py, line {line})" in error) == (2, True)


@pytest.mark.parametrize(
    ("setting", "changed", "sentence"),
    [
        ("b=a", (), "WaveSoftmax cannot be made with the settings {'b': 0.1}"),
        ("a=a", ("--set", "model.context_width=7"), "here they have 7 and"),
    ],
)
def test_a_layer_that_cannot_be_made_is_told_by_the_plan(
    folder: Path, setting: str, changed: tuple[str, ...], sentence: str
) -> None:
    """With a setting that it has not, or without a map of its own between widths that differ."""
    study = folder / "my_layer_study.py"
    study.write_text(study.read_text().replace("a=a", setting))
    answer = sweep(study, "--scale", "smoke", "--dry-run", *changed)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert sentence in answer.stderr
