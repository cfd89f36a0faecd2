"""A dispatcher of six trials that tests identify by number."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.store.records import PlannedTrial, StudyKey
from orchestrator.store.store import Store
from orchestrator.worker.messages import Ending, EndingKind, TrialEvent
from tests.support.notes import RecordingListener
from tests.support.scripted_trials import planned, work_in
from trainables.trial_folder import TrialFolder, TrialOutcome, trial_directory

PLAN = planned(range(6))
IDS = [trial.trial_id for trial in PLAN]
DEATH = Ending(EndingKind.PROCESS_DIED, "its process died")
NO_MEMORY = Ending(EndingKind.OUT_OF_MEMORY, "it ran out of memory in epoch 1")
KEY = StudyKey(study="handed out", scale="smoke", corpus="none")


class Sweep(Dispatcher):
    def __init__(
        self, store: Store, storage: Path, trials: int = 6, *, slots: int = 2, **changes: Any
    ) -> None:
        self.listener = RecordingListener()
        store.register(KEY, PLAN)
        work = work_in(
            storage, store, **{"seconds_per_trial": 1 / 3, "listener": self.listener, **changes}
        )
        super().__init__(PLAN[:trials], work, "me", slots=slots)

    def pack(self, key: str) -> list[int]:
        pack = self.next_pack(key)
        return [] if pack is None else [PLAN.index(trial) for trial in pack.trials]

    def report(self, key: str, *numbers: int, at: int | None = None) -> None:
        events = [event for number in numbers for event in (started(number), done(number))]
        self.process_events(key, events if at is None else [*events, started(at)])

    def run(self, key: str) -> list[int]:
        numbers = self.pack(key)
        self.report(key, *numbers)
        self.end_pack(key)
        return numbers

    def die(self, key: str, *, at: int, ending: Ending = DEATH) -> None:
        assert self.pack(key)[0] == at
        self.report(key, at=at)
        self.end_pack(key, ending)


class Searches:
    def more(self, busy: Collection[str]) -> list[PlannedTrial]:
        return [trial for trial in PLAN[:3] if trial.trial_id not in busy]

    def is_searched(self, trial: PlannedTrial) -> bool:
        return trial in PLAN[:3]

    def stop_above(self, trial: PlannedTrial) -> Mapping[int, float]:
        return {1: float(PLAN.index(trial))}


def started(number: int) -> TrialEvent:
    return TrialEvent(trial_id=IDS[number], host="a machine")


def done(number: int) -> TrialEvent:
    return TrialEvent(
        trial_id=IDS[number], outcome=TrialOutcome(trial_id=IDS[number], state="done")
    )


def states(store: Store) -> list[str]:
    return [row.state for row in store.trials(KEY)]


def folder_of(storage: Path, number: int) -> TrialFolder:
    path = trial_directory(storage, IDS[number])
    path.mkdir(parents=True, exist_ok=True)
    return TrialFolder(path, IDS[number])
