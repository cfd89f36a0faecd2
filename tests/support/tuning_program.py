"""A driver of a tuning, to be killed by tests: `python -m tests.support.tuning_program FOLDER WORKERS`.

Does what the command does, with scripted trials and FOLDER/results.db as their store.
"""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.cluster.run_options import RunOptions
from orchestrator.plan.tuning.tuner import Tuner
from orchestrator.schedule.recording import Recorder
from orchestrator.schedule.study_work import StudyWork
from orchestrator.schedule.trials_run import run_trials
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.opening import open_store
from orchestrator.store.records import OPEN, RunRecord
from orchestrator.worker.pack_run import TrialFunctions
from tests.support.scripted_tuning import KEY, certain, plan, run_scripted_tuning


def main(folder: Path, workers: int) -> None:
    """One run of the command."""
    tuning = plan(budget=4)
    options = RunOptions(storage=FolderStorage(folder), max_concurrent=workers)
    with open_store(f"sqlite:///{folder}/results.db") as store:
        tuner = Tuner(tuning, KEY, certain(tuning), store)
        trials = tuner.start()
        run = store.begin_run(RunRecord(code_version="-", packages={}, host="-", device="cpu", corpus_sha256="0" * 64))
        Recorder(store, options, run).recover(trials, note=print, may_be_pruned=tuner.is_searched)
        states = store.states([trial.trial_id for trial in trials])
        run_trials(
            [trial for trial in trials if states[trial.trial_id] in OPEN],
            StudyWork(
                store=store,
                run_id=run,
                options=options,
                seconds_per_trial=0.2,
                source=tuner,
                functions=TrialFunctions(run_trial=run_scripted_tuning),
            ),
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
