"""A driver to be killed by tests: `python -m tests.support.driver_program FOLDER TRIALS`.

Runs slow scripted trials with FOLDER/results.db as their store and prints the summary as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.recording import Recorder
from orchestrator.schedule.study_work import StudyWork
from orchestrator.schedule.trials_run import run_trials
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.opening import open_store
from orchestrator.store.records import OPEN, RunRecord, StudyKey
from orchestrator.worker.pack_run import TrialFunctions
from tests.support.scripted_trials import SLOW, planned, run_scripted

KEY = StudyKey(study="killed", scale="smoke", corpus="none")


def main(folder: Path, trials: int) -> None:
    """One run of the command, as the command line does it."""
    plan = planned(range(SLOW, SLOW + trials))
    options = RunOptions(storage=FolderStorage(folder))
    with open_store(f"sqlite:///{folder}/results.db") as store:
        store.register(KEY, plan)
        run = store.begin_run(RunRecord(code_version="-", packages={}, host="-", device="cpu", corpus_sha256="0" * 64))
        recovered = Recorder(store, options, run).recover(plan, note=lambda text: print(text, file=sys.stderr))
        states = store.states([trial.trial_id for trial in plan])
        summary = run_trials(
            [trial for trial in plan if states[trial.trial_id] in OPEN],
            StudyWork(
                store=store,
                run_id=run,
                options=options,
                seconds_per_trial=1.2,
                functions=TrialFunctions(run_trial=run_scripted),
            ),
        )
        print(json.dumps({"interrupted": summary.interrupted, "recovered": recovered}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
