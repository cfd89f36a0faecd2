"""Logs of trials in other programs: what they are told and when, and that their trouble is never
the sweep's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from typing_extensions import override

from orchestrator.store import OPEN, PlannedTrial, Store, StudyKey, TrialState
from orchestrator.watch.listener import Listener
from orchestrator.words import is_number
from trainables.errors import first_line
from trainables.trial_folder import EpochMetrics, Metric, TrialOutcome


class Curves(Protocol):
    """One trial in one log, from its start to its end or an interruption."""

    def add(self, epochs: Sequence[EpochMetrics]) -> None:
        """Epochs that ended; a resumed trial may repeat some."""

    def end(self, state: TrialState, cause: str | None, metrics: Mapping[str, float]) -> None:
        """The trial has ended, with these final metrics."""

    def interrupt(self) -> None:
        """The trial has not ended, and may go on in the next sweep."""


class Sink(Protocol):
    """One log of the trials of one study. Any method, of its curves too, may raise anything: its
    server, its disk."""

    name: str
    """For sentences: "MLflow"."""
    place: str
    """Where it writes, as it may be printed."""

    def holds(self, trial: PlannedTrial, state: TrialState, metrics: Mapping[str, float]) -> bool:
        """Whether the log has the trial already as ended in this state, with these final
        metrics."""

    def begin(self, trial: PlannedTrial) -> Curves:
        """Those of a trial that runs; of one that the log has, they go on there."""


class TrialLogs(Listener):
    """Tells every log of every trial. One that fails is left with a note; the next run brings it up
    to date."""

    def __init__(
        self, sinks: Sequence[Sink], store: Store, key: StudyKey, note: Callable[[str], None]
    ) -> None:
        self._sinks, self._store, self._key, self._note = list(sinks), store, key, note
        self._trials: dict[str, PlannedTrial] = {}
        self._running: dict[str, dict[Sink, Curves]] = {}

    @override
    def started(self, trial_id: str, name: str, epoch_count: int | None) -> None:
        """Its curves begin, or go on from the epochs that the store has."""
        if self._sinks and trial_id not in self._trials:
            self._trials = {row.trial_id: row.planned() for row in self._store.trials(self._key)}
        trial = self._trials.get(trial_id)
        if trial is None:  # another command has planned the study without it
            return
        self._interrupt(trial_id)
        running = self._running[trial_id] = {}
        epochs = self._store.epochs(trial_id)
        for sink in list(self._sinks):
            with self._leaving(sink):
                running[sink] = sink.begin(trial)
                running[sink].add(epochs)

    @override
    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        """Its curves have another point."""
        self._tell(trial_id, lambda curves: curves.add([metrics]))

    @override
    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        """It has an end. One that another driver ran, or that kept its result from us, is left for
        `complete`."""
        numbers = _numbers(outcome.metrics)
        self._tell(trial_id, lambda curves: curves.end(outcome.state, outcome.cause, numbers))
        self._running.pop(trial_id, None)

    def complete(self) -> None:
        """Tell of every trial of the study that has ended and is not, or not with all its metrics,
        in the logs."""
        for row in self._store.results(self._key) if self._sinks else []:
            trial = PlannedTrial(trial_id=row["trial_id"], name=row["name"], config=row["config"])
            metrics = _numbers(row["metrics"])
            for sink in list(self._sinks) if row["state"] not in OPEN else []:
                with self._leaving(sink):
                    if not sink.holds(trial, row["state"], metrics):
                        curves = sink.begin(trial)
                        curves.add(self._store.epochs(trial.trial_id))
                        curves.end(row["state"], row["cause"], metrics)

    def close(self) -> None:
        """Nothing follows: trials that have not ended were interrupted."""
        for trial_id in list(self._running):
            self._interrupt(trial_id)
        self._sinks = []

    def _interrupt(self, trial_id: str) -> None:
        self._tell(trial_id, lambda curves: curves.interrupt())
        self._running.pop(trial_id, None)

    def _tell(self, trial_id: str, event: Callable[[Curves], None]) -> None:
        for sink, curves in self._running.get(trial_id, {}).items():
            if sink in self._sinks:
                with self._leaving(sink):
                    event(curves)

    @contextmanager
    def _leaving(self, sink: Sink) -> Iterator[None]:
        """Where the log fails, it is told nothing more."""
        try:
            yield
        # A log's server, disk or package: no trial's trouble, and no reason to stop.
        except Exception as error:
            self._sinks.remove(sink)
            self._note(
                f"{sink.name} at {sink.place} takes nothing more ({first_line(error)[:300]}): the "
                "sweep goes on, and the same command, typed again, writes there what is missing."
            )


def scalars(epoch: EpochMetrics) -> dict[str, float]:
    """The curves of a trial: losses in nats per token, seconds of training, ranks where they were
    taken."""
    curves = {
        "loss/train": epoch.train_loss,
        "loss/validation": epoch.valid_loss,
        "perplexity/validation": epoch.valid_perplexity,
        "seconds/epoch": epoch.seconds,
        "rank/Press": epoch.press_rank,
        "rank/entropy": epoch.entropy_rank,
        "rank/KL": epoch.kl_rank,
    }
    return {name: value for name, value in curves.items() if value is not None}


def _numbers(metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Of final metrics those that are numbers: words and JSON texts are for the store."""
    return {name: float(value) for name, value in metrics.items() if is_number(value)}
