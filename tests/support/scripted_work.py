"""A run of trials that take no time, as the schedule is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.study_work import StudyWork
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.store import Store
from orchestrator.worker.pack_run import TrialFunctions
from tests.support.scripted_trials import run_scripted
from tests.support.store_rows import RUN


def work_in(folder: Path, store: Store, options: Mapping[str, Any] | None = None, **changes: Any) -> StudyWork:
    """A new run with results below `folder`; `options` are of its `RunOptions`, `changes` replace its own fields."""
    fields: dict[str, Any] = {
        "store": store,
        "run_id": store.begin_run(RUN),
        "options": RunOptions(storage=FolderStorage(folder), **(options or {})),
        "seconds_per_trial": 0.3,
        "functions": TrialFunctions(run_trial=run_scripted),
    }
    return StudyWork(**{**fields, **changes})
