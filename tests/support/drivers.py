"""Functions that run a driver of scripted trials, in processes that tests stop and kill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.plan import Tuner
from orchestrator.schedule.recording import Recorder
from orchestrator.schedule.trials_run import run_trials
from orchestrator.store.opening import open_store
from orchestrator.store.records import OPEN, StudyKey
from orchestrator.worker import TrialFunctions
from tests.support import scripted_measurements, scripted_tuning
from tests.support.notes import RecordingListener
from tests.support.scripted_trials import planned, work_in

KEY = StudyKey(study="scripted", scale="smoke", corpus="none")
Report = Callable[[Any], None]


def train(
    report: Report,
    folder: Path,
    seeds: Sequence[int],
    *,
    store_url: str | None = None,
    moment: Callable[[], None] = lambda: None,
    options: dict[str, Any] | None = None,
    **changes: Any,
) -> None:
    """Train one scripted trial per seed, then report the result and the driver's notes.

    `moment` is called just before the first trial.
    """
    plan, listener = planned(seeds), RecordingListener()
    ids = [trial.trial_id for trial in plan]
    with open_store(store_url or f"sqlite:///{folder}/results.db") as store:
        store.register(KEY, plan)
        fields = {
            "study": KEY,
            "seconds_per_trial": 1.2,
            "listener": listener,
        } | changes
        work = work_in(folder, store, options, **fields)
        Recorder(store, work.options.storage, work.run_id).recover(plan, note=listener.note)
        states = store.states(ids)
        moment()
        summary = run_trials([trial for trial in plan if states[trial.trial_id] in OPEN], work)
    report(
        {
            "interrupted": summary.interrupted,
            "notes": listener.notes,
        }
    )


def measure(_report: Report, folder: Path, seeds: Sequence[int]) -> None:
    key, names = scripted_measurements.KEY, scripted_measurements.NAMES
    plan = planned(seeds)
    with open_store(f"sqlite:///{folder}/results.db") as store:
        run_id = scripted_measurements.store_done(store, plan, folder)
        functions = TrialFunctions(measure_kept=scripted_measurements.measure_scripted)
        fields = {
            "run_id": run_id,
            "measurements": names,
            "seconds_per_trial": 1.0,
            "functions": functions,
        }
        work = work_in(folder, store, {"max_concurrent": 1}, **fields)
        Recorder(store, work.options.storage, run_id).measurements(store.unmeasured(key, names))
        unmeasured = store.unmeasured(key, names)
        run_trials(
            [trial for trial in plan if trial.trial_id in unmeasured],
            replace(work, unmeasured=unmeasured),
        )


def tune(_report: Report, folder: Path) -> None:
    plan = scripted_tuning.plan(budget=4)
    with open_store(f"sqlite:///{folder}/results.db") as store:
        tuner = Tuner(plan, scripted_tuning.KEY, scripted_tuning.certain(plan), store)
        trials = tuner.start()
        functions = TrialFunctions(run_trial=scripted_tuning.run_scripted_tuning)
        options = {"max_concurrent": 1}
        work = work_in(
            folder, store, options, seconds_per_trial=0.2, source=tuner, functions=functions
        )
        Recorder(store, work.options.storage, work.run_id).recover(
            trials, note=print, may_be_pruned=tuner.is_searched
        )
        states = store.states([trial.trial_id for trial in trials])
        run_trials([trial for trial in trials if states[trial.trial_id] in OPEN], work)
