from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.support.failing_reads import failing_reads
from trainables.errors import UserError
from trainables.trial_folder import Checkpoints, TrialFolder, TrialOutcome


@pytest.fixture
def folder(tmp_path: Path) -> TrialFolder:
    folder = TrialFolder(tmp_path, "a", pytest.fail)
    for step in (1, 2):
        Checkpoints(folder).save(step, {"x": torch.ones(2)}, {"progress": step})
    return folder


@pytest.mark.parametrize(
    ("number", "error"),
    [(errno.ESTALE, OSError), (errno.EIO, OSError), (errno.EACCES, UserError)],
)
def test_unreadable_checkpoint_stays(
    folder: TrialFolder, number: int, error: type[Exception]
) -> None:
    before = folder.checkpoints()
    with failing_reads("checkpoint-", number), pytest.raises(error, match=os.strerror(number)):
        Checkpoints(folder).latest("cpu")
    assert folder.checkpoints() == before
    newest = Checkpoints(folder).latest("cpu")
    assert newest is not None and newest[1]["progress"] == 2


@pytest.mark.parametrize("name", ["result.json", "spectrum.npy"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
@pytest.mark.parametrize("read", [TrialFolder.result, TrialFolder.outcome])
def test_unopenable_result_gets_one_sentence(
    tmp_path: Path, name: str, number: int, read: Callable[[TrialFolder], Any]
) -> None:
    folder = TrialFolder(tmp_path, "a")
    outcome = TrialOutcome(
        trial_id="a", state="done", measurements={"spectrum@1": {"press_rank": 2}}
    )
    folder.write_result(outcome, np.array([3.0, 1.0]))
    sentence = rf"{name} cannot be read \({os.strerror(number)}\)"
    with failing_reads(name, number), pytest.raises(UserError, match=sentence):
        read(folder)
    assert read(folder) is not None
