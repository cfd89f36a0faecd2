"""Between a sweep and its logs: what they are told and when, and that their trouble is never the sweep's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from typing_extensions import override

from orchestrator.store import OPEN, PlannedTrial, Store, StudyKey
from orchestrator.watch.listener import Listener
from orchestrator.watch.sink import Sink, numbers
from trainables.errors import first_line
from trainables.trial_folder import EpochMetrics, TrialOutcome


class TrialLogs(Listener):
    """Tells every log of every trial. One that fails is left with a note; the next run brings it up to date."""

    def __init__(self, sinks: Sequence[Sink], store: Store, key: StudyKey, note: Callable[[str], None]) -> None:
        self._sinks, self._store, self._key, self._note = list(sinks), store, key, note
        self._trials: dict[str, PlannedTrial] = {}
        self._running: set[str] = set()

    @override
    def started(self, trial_id: str, name: str) -> None:
        """Its curves begin, or go on from the epochs that the store has."""
        if not self._sinks:
            return
        if trial_id not in self._trials:
            self._trials = {row.trial_id: row.planned() for row in self._store.trials(self._key)}
        trial = self._trials.get(trial_id)
        if trial is None:  # another command has planned the study without it
            return
        epochs = self._store.epochs(trial_id)
        self._running.add(trial_id)
        self._tell(lambda sink: sink.begin(trial, epochs))

    @override
    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        """Its curves have another point."""
        if trial_id in self._running:
            self._tell(lambda sink: sink.epoch(trial_id, metrics))

    @override
    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        """It has an end. One that another driver ran, or that kept its result from us, is left for `complete`."""
        if trial_id not in self._running:
            return
        self._running.remove(trial_id)
        metrics = {name: value for each in outcome.measurements.values() for name, value in each.items()}
        self._tell(lambda sink: sink.end(trial_id, outcome.state, outcome.cause, numbers(metrics)))

    def complete(self) -> None:
        """Tell of every trial of the study that has ended and is not, or not with all its metrics, in the logs."""
        for row in self._store.results(self._key) if self._sinks else []:
            if row["state"] in OPEN:
                continue
            self._tell(partial(self._tell_whole, row))

    def close(self) -> None:
        """Nothing follows."""
        self._tell(lambda sink: sink.close())
        self._sinks = []

    def _tell_whole(self, row: Mapping[str, Any], sink: Sink) -> None:
        trial = PlannedTrial(trial_id=row["trial_id"], name=row["name"], config=row["config"])
        metrics = numbers(row["metrics"])
        if not sink.holds(trial, row["state"], metrics):
            sink.begin(trial, self._store.epochs(trial.trial_id))
            sink.end(trial.trial_id, row["state"], row["cause"], metrics)

    def _tell(self, tell: Callable[[Sink], None]) -> None:
        for sink in list(self._sinks):
            try:
                tell(sink)
            except Exception as error:  # a log's server, disk or package: no trial's trouble, and no reason to stop
                self._sinks.remove(sink)
                self._note(
                    f"{sink.name} at {sink.place} takes nothing more ({first_line(error)[:300]}): the sweep goes on, "
                    "and the same command, typed again, writes there what is missing."
                )
