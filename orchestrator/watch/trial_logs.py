"""Trials' logs in other programs. A log's failure never disturbs the sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from typing_extensions import override

from orchestrator.store import OPEN, PlannedTrial, Store, StudyKey, TrialState
from orchestrator.watch.listener import Listener
from orchestrator.words import is_number
from trainables.errors import first_line
from trainables.trial_folder import Epoch, Metric, TrialOutcome

CURVES = {
    "train_loss": "loss/train",
    "valid_loss": "loss/validation",
    "valid_perplexity": "perplexity/validation",
    "press_rank": "rank/Press",
    "entropy_rank": "rank/entropy",
    "kl_rank": "rank/KL",
}
"""Names of curves of metrics. Losses are in nats per token."""


class Curves(Protocol):
    """One trial's curves in one log, open until the trial ends or is interrupted."""

    def add(self, epochs: Sequence[Epoch]) -> None:
        """Add ended epochs. A resumed trial may add an epoch again."""

    def end(self, state: TrialState, cause: str | None, metrics: Mapping[str, float]) -> None:
        """Record the trial's end with its final metrics."""

    def interrupt(self) -> None:
        """Record that the trial stopped unfinished; the next sweep may resume it."""


class Sink(Protocol):
    """A program or folder that receives the curves of a study's trials, such as MLflow.

    Its methods, and its curves' methods, may raise any error.
    """

    name: str
    """Name in messages, such as "MLflow"."""
    address: str
    """Address that is safe to print."""

    def holds(self, trial: PlannedTrial, state: TrialState, metrics: Mapping[str, float]) -> bool:
        """Return whether the log has the trial's end, with this state and these metrics."""

    def begin(self, trial: PlannedTrial) -> Curves:
        """Return the trial's open curves. Adding an epoch again makes no second point."""


class TrialLogs(Listener):
    """Writes every trial to every log. A failing log is dropped; the next run completes it."""

    def __init__(
        self, sinks: Sequence[Sink], store: Store, key: StudyKey, note: Callable[[str], None]
    ) -> None:
        self._sinks, self._store, self._key, self._note = list(sinks), store, key, note
        self._trials: dict[str, PlannedTrial] = {}
        self._running: dict[str, dict[Sink, Curves]] = {}

    @override
    def started(self, trial_id: str, name: str, epoch_count: int | None) -> None:
        """Open the trial's curves and add the epochs in the store."""
        if self._sinks and trial_id not in self._trials:
            self._trials = {row.trial_id: row for row in self._store.trials(self._key)}
        trial = self._trials.get(trial_id)
        if trial is None:  # another command re-planned the study without this trial
            return
        self._interrupt(trial_id)
        running = self._running[trial_id] = {}
        epochs = self._store.epochs(trial_id)
        for sink in list(self._sinks):
            with self._drop_on_failure(sink):
                running[sink] = sink.begin(trial)
                running[sink].add(epochs)

    @override
    def epoch(self, trial_id: str, metrics: Epoch) -> None:
        self._notify(trial_id, lambda curves: curves.add([metrics]))

    @override
    def finished(self, name: str, outcome: TrialOutcome) -> None:
        """End the trial's curves. Results that did not reach this driver are left to `complete`."""
        trial_id, numbers = outcome.trial_id, _numbers(outcome.metrics)
        self._notify(trial_id, lambda curves: curves.end(outcome.state, outcome.cause, numbers))
        self._running.pop(trial_id, None)

    def complete(self) -> None:
        """Complete logs in which ended trials or some of their metrics are missing."""
        for row in self._store.results(self._key) if self._sinks else []:
            trial = PlannedTrial(trial_id=row["trial_id"], name=row["name"], config=row["config"])
            metrics = _numbers(row["metrics"])
            for sink in list(self._sinks) if row["state"] not in OPEN else []:
                with self._drop_on_failure(sink):
                    if not sink.holds(trial, row["state"], metrics):
                        curves = sink.begin(trial)
                        curves.add(self._store.epochs(trial.trial_id))
                        curves.end(row["state"], row["cause"], metrics)

    def close(self) -> None:
        """Record unfinished trials as interrupted, and drop all logs."""
        for trial_id in list(self._running):
            self._interrupt(trial_id)
        self._sinks = []

    def _interrupt(self, trial_id: str) -> None:
        self._notify(trial_id, lambda curves: curves.interrupt())
        self._running.pop(trial_id, None)

    def _notify(self, trial_id: str, event: Callable[[Curves], None]) -> None:
        for sink, curves in self._running.get(trial_id, {}).items():
            if sink in self._sinks:
                with self._drop_on_failure(sink):
                    event(curves)

    @contextmanager
    def _drop_on_failure(self, sink: Sink) -> Iterator[None]:
        try:
            yield
        # A failing server, disk or package of a log must not stop the sweep.
        except Exception as error:
            self._sinks.remove(sink)
            self._note(
                f"{sink.name} at {sink.address} failed ({first_line(error)[:300]}). The sweep "
                "continues without it. Run the same command again to add the missing values."
            )


def scalars(epoch: Epoch) -> dict[str, float]:
    """Return an epoch's points: its seconds, and its metrics by the names of `CURVES`.

    Any other metric, such as "accuracy", is "epoch/accuracy", because final metrics may have its
    name.
    """
    points = {CURVES.get(name, f"epoch/{name}"): value for name, value in epoch.numbers.items()}
    return {**points, "seconds/epoch": epoch.seconds}


def _numbers(metrics: Mapping[str, Metric]) -> dict[str, float]:
    return {name: float(value) for name, value in metrics.items() if is_number(value)}
