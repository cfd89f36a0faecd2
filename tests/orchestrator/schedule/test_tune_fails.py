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


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OutOfMemoryError("low on memory"), "Memory ran out"),  # type: ignore[no-untyped-call]
        (FileNotFoundError(2, "No such file or directory", "/tmp/packs"), "Ray Tune failed ("),
    ],
)
def test_tune_failure_is_one_sentence(
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
        fit(driver, job, title="trials", late_machines=None)
    assert str(raised.value).startswith(sentence) and "run the same command again" in str(
        raised.value
    )
