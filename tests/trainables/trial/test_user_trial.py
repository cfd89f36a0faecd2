from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import own_study
from tests.support.processes import Process
from trainables.config import Goal, Trainable, code_of, import_file, read_config
from trainables.errors import UserError
from trainables.runtime import Runtime
from trainables.trial import run_trial
from trainables.trial_folder import SupersededError, TrialFolder, TrialOutcome, folder

HEAD = """import math, os
import numpy as np
import torch
from trainables.config import Trainable


class Mlp(Trainable):
    width: int = 3

    def train(self, trial):
"""
Run = Callable[..., TrialOutcome]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs a trial whose method `train` has this body."""

    def run_body(body: str, goal: str | None = None, **options: Any) -> TrialOutcome:
        (tmp_path / "own.py").write_text(HEAD + "".join(f"        {s}\n" for s in body.split("\n")))
        config = import_file(tmp_path / "own.py").Mlp()
        runtime = Runtime(checkpoint_every_s=0.0, goal=Goal(goal) if goal else None)
        return run_trial(config, directory=tmp_path / "trial", runtime=runtime, **options)

    return run_body


def train_own(_report: object, directory: Path, content: Any, every_s: float) -> None:
    import_file(Path(own_study.__file__))
    run_trial(
        read_config(content), directory=directory, runtime=Runtime(checkpoint_every_s=every_s)
    )


def without_times(directory: Path, config: Trainable) -> tuple[object, object]:
    outcome = TrialFolder(directory, config.trial_id).outcome()
    assert outcome is not None
    epochs = [epoch.model_dump(exclude={"seconds"}) for epoch in outcome.epochs]
    return outcome.measurements["user@1"], epochs


@pytest.mark.parametrize("way", ["each epoch", "no checkpoint", "no restore"])
def test_repeated_kills_keep_the_bits(tmp_path: Path, way: str) -> None:
    code, every_s = import_file(Path(own_study.__file__)), 0.0 if way == "each epoch" else 1e9
    config = code.Mlp(pause_s=0.03, restores=way != "no restore")
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    train_own(None, undisturbed, config.model_dump(mode="json"), 0.0)
    diary = disturbed / "files" / "diary.txt"

    def lines() -> list[str]:
        return diary.read_text().splitlines() if diary.exists() else []

    def has(count: int) -> bool:
        return len(lines()) >= count

    for _ in range(3):
        process = Process(tmp_path, train_own, disturbed, config.model_dump(mode="json"), every_s)
        process.wait_until(partial(has, len(lines()) + random.randint(2, 4)))
        process.kill()
    train_own(None, disturbed, config.model_dump(mode="json"), every_s)
    assert without_times(disturbed, config) == without_times(undisturbed, config)
    starts = [int(line.split()[1]) for line in lines() if line.startswith("start")]
    assert len(starts) == 4
    assert (starts[-1] > 0) == (every_s == 0.0)


def test_all_kinds_of_numbers_are_reported(run: Run) -> None:
    outcome = run(
        "a, b = torch.tensor(0.5, requires_grad=True), np.float32(0.25)\n"
        "trial.report(np.int64(0), a=a, b=b, c=np.bool_(True), d=torch.tensor([3]), e=7)\n"
        "return {'a': a, 'b': b, 'word': 'x', 'f': np.array(2.0), 'g': True}"
    )
    assert outcome.epochs[0].model_dump(exclude={"seconds"}) == {
        **{"epoch": 0, "a": 0.5, "b": 0.25, "c": True, "d": 3, "e": 7}
    }
    assert outcome.measurements["user@1"] == {"a": 0.5, "b": 0.25, "word": "x", "f": 2, "g": True}


def test_common_words_may_name_metrics(run: Run) -> None:
    """Other kinds of trials have settings of these names."""
    names = ("steps", "model", "text", "rank", "size", "top_k_accuracy", "output_layer.gain")
    outcome = run(f"trial.report(0, steps=3)\nreturn dict.fromkeys({names}, 0.5)")
    assert outcome.measurements["user@1"] == dict.fromkeys(names, 0.5)
    assert TrialOutcome.model_validate_json(outcome.model_dump_json()) == outcome


def test_last_epoch_gives_final_metrics(run: Run) -> None:
    outcome = run("trial.report(0, a=1)\ntrial.report(4, a=2)", goal="a")
    assert outcome.measurements["user@1"] == {"a": 2}


@pytest.mark.parametrize("end", ["trial.report(1, a=math.nan)", "return {'a': torch.tensor(1e40)}"])
def test_infinite_metric_means_diverged(run: Run, end: str) -> None:
    outcome = run(f"trial.report(0, a=1.0)\n{end}")
    assert (outcome.state, len(outcome.epochs)) == ("diverged", 1)
    assert (outcome.cause or "").startswith("a became ")


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("pass", "no final"),
        ("return 0.5", "0.5"),
        ("return torch.ones(2)", "dict"),
        ("return {}", "no final"),
        ("return {'goal': [1]}", "goal must be a number"),
        ("return {'goal': None}", "goal must be a number"),
        ("return {'goal': 2**70}", "64 bits"),
        *(
            (f"return {{'goal': 1, {n!r}: 1}}", n)
            for n in ("width", "width.x", "seed", "wall_seconds", "name", "epoch")
        ),
        ("return {'goal': 1, 'a\\nb': 1}", "name"),
        ("trial.report(0, goal='x')", "goal must be a number"),
        ("trial.report(0, goal=torch.ones(2))", "goal must be a number"),
        ("trial.report(0, width=1)", "width"),
        ("trial.report(0, seconds=1)", "seconds"),
        ("trial.report(0, goal=1)\ntrial.report(0, goal=1)", "after 0"),
        ("trial.report(-1, goal=1)", "got -1"),
        ("trial.report(0.5, goal=1)", "got 0.5"),
        ("trial.report(True, goal=1)", "got True"),
        ("trial.restore(best={})\ntrial.restore(best={})", "once"),
        ("trial.report(0, goal=1)\ntrial.restore(best={})", "before"),
        ("trial.restore(best=1)", "in place"),
    ],
)
def test_bad_trial_is_one_sentence(run: Run, body: str, word: str) -> None:
    with pytest.raises(UserError, match=word) as caught:
        run(body, goal="goal")
    assert "\n" not in str(caught.value)


def test_own_files_continue_the_curve(run: Run) -> None:
    """A trial that resumes by its own means keeps its earlier epochs."""
    body = (
        "path = trial.folder / 'last'\n"
        "first = int(path.read_text()) + 1 if path.exists() else 0\n"
        "for epoch in range(first, 6):\n"
        "    trial.report(epoch, a=epoch)\n"
        "    path.write_text(str(epoch))\n"
        "    if epoch == 2 and not first: raise OSError('cut')"
    )
    with pytest.raises(OSError, match="cut"):
        run(body)
    assert [epoch.epoch for epoch in run(body).epochs] == list(range(6))


def test_pruned_trial_resumes_later(run: Run, tmp_path: Path) -> None:
    body = (
        "steps = []\n"
        "for epoch in range(trial.restore(steps=steps), 5):\n"
        "    steps.append(epoch)\n"
        "    trial.report(epoch, loss=10 - epoch)\n"
        "return {'loss': 1, 'trace': str(steps)}"
    )
    pruned = run(body, goal="loss", stop_above={3: 7.5})  # epochs are counted from 1
    assert (pruned.state, len(pruned.epochs)) == ("pruned", 3)
    done = run(body, goal="loss")
    assert [epoch.epoch for epoch in done.epochs] == list(range(5))
    assert done.measurements["user@1"]["trace"] == "[0, 1, 2, 3, 4]"
    assert "resumes after epoch 2" in (tmp_path / "trial" / "log.txt").read_text()
    assert not list((tmp_path / "trial").glob("checkpoint-*"))


def test_superseded_trial_stops(run: Run, tmp_path: Path) -> None:
    body = (
        "for epoch in range(9):\n    trial.report(epoch, a=1)\n    if epoch == 3: os.unlink('{}')"
    )
    fence = str(tmp_path / "trial" / "worker")
    reported: list[int] = []
    with pytest.raises(SupersededError):
        run(body.format(fence), on_epoch=lambda epoch: reported.append(epoch.epoch))
    assert reported == [0, 1, 2, 3]


def test_full_disk_is_not_the_trials_fault(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(folder, "append", fail)
    with pytest.raises(OSError, match="space"):
        run("trial.report(0, a=1)\ntrial.report(1, a=1)")


def test_error_names_the_users_line(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run("value = 1\nvalue / 0")
    code = code_of([import_file(tmp_path / "own.py").Mlp()])
    cause = TrialFolder(tmp_path / "trial", "0" * 64).failure_cause(caught.value, code)
    line = HEAD.count("\n") + 2
    assert cause == f"ZeroDivisionError: division by zero (own.py, line {line})"
