"""Tune itself fails: a sentence, and a guard would start the command again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import tune
from ray.exceptions import OutOfMemoryError

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.tune import fit
from orchestrator.storage.storage import FolderStorage
from orchestrator.worker import Job, TrialFunctions
from trainables.errors import UserError

MEMORY = """Task was killed due to the node running low on memory.
Memory on the node (IP: 10.0.0.1, ID: 2f) was 22.81GB / 23.50GB (0.970). Top 10 memory users:
PID\tMEM(GB)\tCOMMAND
4711\t18.20\tpython hog.py
12\t0.31\tray::IDLE
"""


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            OutOfMemoryError(MEMORY),  # type: ignore[no-untyped-call]
            "Memory ran out, and Ray ended one of its processes; process 4711 (python hog.py) ",
        ),
        (FileNotFoundError(2, "No such file or directory", "/tmp/packs"), "Ray Tune failed ("),
    ],
)
def test_what_ends_tune_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str
) -> None:
    def fails(_: Any) -> None:
        try:
            raise error
        except OutOfMemoryError as cause:
            raise RuntimeError("Caught unexpected exception") from cause  # as Tune does

    monkeypatch.setattr(tune.Tuner, "fit", fails)
    driver: Any = SimpleNamespace(raise_error=lambda: None)
    job = Job(
        options=RunOptions(storage=FolderStorage(tmp_path)),
        measurements=(),
        functions=TrialFunctions(),
    )
    with pytest.raises(UserError) as raised:
        fit(driver, job, title="trials", late=None)
    assert str(raised.value).startswith(sentence) and "type the same command again" in str(
        raised.value
    )
