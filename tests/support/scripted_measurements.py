"""Measurements for scheduling tests: they compute nothing, but write real files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.store.records import PlannedTrial, StudyKey
from orchestrator.store.store import Store
from tests.support.scripted_trials import log
from tests.support.store_rows import RUN
from trainables.config import TrialConfig
from trainables.trial_folder.folder import TrialFolder, trial_directory
from trainables.trial_folder.outcome import TrialOutcome

KEY = StudyKey(study="measured later", scale="smoke", corpus="none")
SLOW_S = 0.5
NAMES = ("first@1", "second@1")


def store_done(store: Store, plan: Sequence[PlannedTrial], storage: Path) -> int:
    store.register(KEY, plan)
    run_id = store.begin_run(RUN)
    for trial in plan:
        trial_directory(storage, trial.trial_id).mkdir(parents=True, exist_ok=True)
        store.record(TrialOutcome(trial_id=trial.trial_id, state="done"), run_id=run_id)
    return run_id


def measure_scripted(
    config: TrialConfig, *, directory: Path, names: Sequence[str], **_: Any
) -> None:
    folder = TrialFolder(directory, config.trial_id)
    with folder.locked():
        for name in names:
            if folder.measurement(name) is not None:
                continue
            log(directory, f"start {config.seed} {name}")
            time.sleep(SLOW_S)
            metric = name.partition("@")[0]
            folder.write_measurement(name, ({metric: config.seed}, None))
            log(directory, f"end {config.seed} {name}")
