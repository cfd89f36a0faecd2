"""A driver to be killed by tests while it measures: `python -m tests.support.measuring_program FOLDER TRIALS`.

Measures slow scripted trials that are done in FOLDER/results.db and prints the summary as JSON.
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
from orchestrator.worker.pack_run import TrialFunctions
from tests.support.scripted_measurements import KEY, NAMES, measure_scripted, store_done
from tests.support.scripted_trials import SLOW, planned


def main(folder: Path, trials: int) -> None:
    """One run of the command, as the command line does it."""
    plan = planned(range(SLOW, SLOW + trials))
    with open_store(f"sqlite:///{folder}/results.db") as store:
        run_id = store_done(store, plan, folder)
        options = RunOptions(storage=FolderStorage(folder))
        recovered, _ = Recorder(store, options, run_id).measurements(store.lacking(KEY, NAMES))
        lacking = store.lacking(KEY, NAMES)
        summary = run_trials(
            [trial for trial in plan if trial.trial_id in lacking],
            StudyWork(
                store=store,
                run_id=run_id,
                options=options,
                measurements=NAMES,
                seconds_per_trial=1.0,
                lacking=lacking,
                functions=TrialFunctions(measure_kept=measure_scripted),
            ),
        )
        print(json.dumps({"interrupted": summary.interrupted, "recovered": recovered}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
