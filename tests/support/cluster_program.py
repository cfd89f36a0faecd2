"""A driver on a machine of a cluster: `python -m tests.support.cluster_program STORAGE STORE ADDRESS SEED SEED...`.

Runs slow scripted trials and prints the summary, and what the listener was told, as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.study_work import StudyWork
from orchestrator.schedule.trials_run import run_trials
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.opening import open_store
from orchestrator.store.records import OPEN, RunRecord, StudyKey
from orchestrator.watch.listener import Listener
from orchestrator.worker.pack_run import TrialFunctions
from tests.support.scripted_trials import planned, run_scripted

KEY = StudyKey(study="scripted", scale="smoke", corpus="none")


class Notes(Listener):
    """A listener that remembers what is said, and says it on standard error."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.more = 0

    def added(self, count: int) -> None:
        self.more += count

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(text, file=sys.stderr, flush=True)


def main(storage: Path, store_url: str, address: str, seeds: Sequence[int]) -> None:
    """One run of the command, as the command line does it."""
    plan = planned(seeds)
    listener = Notes()
    with open_store(store_url) as store:
        store.register(KEY, plan)
        run = store.begin_run(RunRecord(code_version="-", packages={}, host="-", device="cpu", corpus_sha256="0" * 64))
        states = store.states([trial.trial_id for trial in plan])
        summary = run_trials(
            [trial for trial in plan if states[trial.trial_id] in OPEN],
            StudyWork(
                store=store,
                run_id=run,
                options=RunOptions(storage=FolderStorage(storage), address=address),
                study=KEY,
                seconds_per_trial=60,
                planned_ids={trial.trial_id for trial in plan},
                listener=listener,
                functions=TrialFunctions(run_trial=run_scripted),
            ),
        )
    print(json.dumps({"interrupted": summary.interrupted, "notes": listener.notes, "added": listener.more}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], list(map(int, sys.argv[4:])))
