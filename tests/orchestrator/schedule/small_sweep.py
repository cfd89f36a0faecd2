"""A sweep of two tiny trials with real store, folders and recorder, but without Ray."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.recording import Recorder
from orchestrator.schedule.study_work import StudyWork
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.lease import expire_dead_owners, this_owner
from orchestrator.store.opening import open_store
from orchestrator.store.records import OPEN, PlannedTrial, StudyKey
from orchestrator.sweep import write_study_file
from orchestrator.worker import Job, TrialFunctions, run_pack
from orchestrator.worker.failures import BrokenProcessError
from orchestrator.worker.messages import EVENTS, ORDERLY_END, Ending, EndingKind, Pack
from tests.support import tiny_trial
from tests.support.command import TIMES
from tests.support.notes import RecordingListener
from tests.support.store_rows import RUN
from trainables.runtime import Runtime
from trainables.trial import kept_weights, trial_run

KEY = StudyKey(study="small", scale="smoke", corpus="tiny")
CONFIG = tiny_trial.trial(epochs=2, epoch_tokens=60)
PLAN = [
    PlannedTrial.of(CONFIG.model_copy(update={"seed": seed}), f"seed={seed}") for seed in (1, 2)
]
MEASUREMENTS = ("perplexity@1", "spectrum@1")


def sweep(
    folder: Path, plan: Sequence[PlannedTrial] = PLAN, names: Sequence[str] = MEASUREMENTS
) -> list[str]:
    trial_run.load = kept_weights.load = lambda *_, **__: tiny_trial.corpus(600)
    storage, listener = FolderStorage(folder), RecordingListener()
    storage.check()
    options = RunOptions(storage=storage, runtime=Runtime(checkpoint_every_s=0.0))
    keep = partial(write_study_file, storage)
    with open_store(f"sqlite:///{folder}/results.db", on_register=keep) as store:
        store.register(KEY, plan)
        expire_dead_owners(store)
        run_id = store.begin_run(RUN)
        try:
            recorder = Recorder(store, storage, run_id)
            recorder.recover(plan, note=listener.note)
            recorder.measurements(store.unmeasured(KEY, names))
            unmeasured = store.unmeasured(KEY, names)
            states = store.states([trial.trial_id for trial in plan])
            work = StudyWork(
                store=store,
                run_id=run_id,
                options=options,
                seconds_per_trial=60.0,
                study=KEY,
                listener=listener,
                measurements=MEASUREMENTS,
                unmeasured=unmeasured,
            )
            open_trials = [
                trial
                for trial in plan
                if trial.trial_id in unmeasured or states[trial.trial_id] in OPEN
            ]
            with closing(Dispatcher(open_trials, work, this_owner(), slots=1)) as dispatcher:
                _drive(
                    dispatcher,
                    Job(options=options, measurements=MEASUREMENTS, functions=TrialFunctions()),
                )
        finally:
            store.end_run(run_id)
    return listener.notes + [end.cause for end in listener.outcomes.values() if end.cause]


def _drive(dispatcher: Dispatcher, job: Job) -> None:
    """An error in the driver ends the sweep. An error in a worker ends only the worker's trials."""
    while not dispatcher.finished:
        pack = dispatcher.next_pack("the pack")
        assert pack is not None
        dispatcher.end_pack("the pack", _run_pack(pack, job, dispatcher))


def _run_pack(pack: Pack, job: Job, dispatcher: Dispatcher) -> Ending:
    troubles: list[Exception] = []

    def send(text: str, _name: str) -> None:
        if not troubles:
            try:
                dispatcher.process_events("the pack", EVENTS.validate_json(text))
            except Exception as error:
                troubles.append(error)

    try:
        run_pack(pack, job, send)
        ending = ORDERLY_END
    except BrokenProcessError as error:
        ending = Ending(EndingKind.ERROR, str(error))
    if troubles:
        raise troubles[0]
    return ending


def table(folder: Path) -> list[dict[str, Any]]:
    with open_store(f"sqlite:///{folder}/results.db") as store:
        spectra = store.spectra(KEY)
        return [
            {
                "state": row["state"],
                "metrics": {
                    name: value for name, value in row["metrics"].items() if name not in TIMES
                },
                "losses": [epoch.numbers["valid_loss"] for epoch in store.epochs(row["trial_id"])],
                "spectrum": spectra[row["trial_id"]].tolist()
                if row["trial_id"] in spectra
                else None,
            }
            for row in store.results(KEY)
        ]
