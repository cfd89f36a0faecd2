"""A storage folder with two studies that share a trial, and a trial without a study."""

from __future__ import annotations

from functools import partial

from orchestrator.storage import Storage
from orchestrator.store import PlannedTrial, Position, Store, StudyKey, open_store
from orchestrator.sweep import write_study_file
from tests.support import tiny_trial
from tests.support.store_rows import KEY, RUN, SPECTRUM, outcome
from trainables.trial_folder import FinalState, Metric, TrialOutcome

OTHER = StudyKey(study="tuned", scale="smoke", corpus="tiny", overrides='{"training.epochs":3}')
STATES: tuple[FinalState, ...] = ("done", "done", "diverged", "pruned")


def planned(seed: int, position: Position | None = None) -> PlannedTrial:
    config = tiny_trial.trial().model_copy(update={"seed": seed})
    return PlannedTrial.of(config, f"tiny seed={seed}", position)


TRIALS = [planned(seed) for seed in range(6)]
TUNED = [planned(0), planned(9, Position(side="gss", stage="stage2", number=1))]
STRANGER = planned(77)


def end(store: Store, storage: Storage, trial: PlannedTrial, ending: TrialOutcome) -> None:
    spectrum = SPECTRUM if ending.state == "done" else None
    with storage.working(trial.trial_id) as folder:
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.write_config(trial.validated.model_dump_json(indent=1))
        folder.write_result(ending, spectrum)
    store.record(ending, run_id=store.begin_run(RUN), spectrum=spectrum)


def fill(url: str, storage: Storage) -> None:
    with open_store(url, on_register=partial(write_study_file, storage)) as store:
        store.register(KEY, TRIALS)
        store.register(OTHER, TUNED)
        store.add_trials([STRANGER])
        for number, state in enumerate(STATES):
            ending = outcome(TRIALS[number].trial_id, state=state, epochs=number + 1)
            end(store, storage, TRIALS[number], ending)
        end(store, storage, STRANGER, outcome(STRANGER.trial_id))
        later: dict[str, Metric] = {"later_metric": 1 / 3}
        with storage.working(TRIALS[1].trial_id) as folder:
            folder.write_measurement("later@2", (later, SPECTRUM))
        store.add_measurement(TRIALS[1].trial_id, "later@2", later, spectrum=SPECTRUM)
