"""What every results store does and guarantees, whatever database is behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from orchestrator.store.records import (
    LOST,
    PlannedTrial,
    Requests,
    RunRecord,
    StudyKey,
    StudySummary,
    TrialRow,
    TrialState,
)
from trainables.trial_folder.outcome import EpochMetrics, Metric, TrialOutcome

if TYPE_CHECKING:
    import numpy as np


class Store(ABC):
    """The truth about which trials exist, which are done and what they measured.

    Guarantees:
    - Every method is one transaction: after a kill or a power cut it happened completely or not at all, and what a
      method that returned has written is on disk.
    - A done trial never changes: no method alters its state, epochs, measurements or spectrum. A measurement invented
      later can be added to it, never replaced.
    - Of several processes that claim the same trial at the same time, one gets it.
    - NaN and infinity are never stored: one of them is a `ValueError`, and nothing of that call is written.
    - Reads see one moment: a trial is never seen half recorded.
    - One store object may be used from several threads. After a fork the child has to open its own.

    A trial's states: planned -> running (`claim`) -> done, diverged or failed (`record`, `fail`); running -> planned
    (`release`, `expire`); failed, diverged -> planned (`reset`). `record` accepts an outcome in any state but done,
    because a result file found after a crash may belong to a trial that was given up meanwhile.

    An unknown trial is a `KeyError`. Trouble that the person at the keyboard can cure (disk full, read-only folder,
    server gone, wrong password) is a `UserError` from any method.
    """

    @abstractmethod
    def register(
        self, key: StudyKey, trials: Sequence[PlannedTrial], *, instead_of: Sequence[str] | None = None
    ) -> bool:
        """Make the study's membership exactly `trials`, in this order; trials not known yet become planned.

        With `instead_of` only where the members are these trial ids at that moment: of two processes that plan further
        trials from the same members, one does. Returns whether the membership is `trials` now; where not, it stays as
        it was. A trial belongs to as many studies as plan it, and is never deleted. Raises AssertionError where a
        known `trial_id` comes with another config, or comes twice.
        """

    @abstractmethod
    def studies(self) -> list[StudySummary]:
        """Every study variant with the count of each state, zeros included; the one planned last comes last."""

    @abstractmethod
    def trials(self, key: StudyKey) -> list[TrialRow]:
        """The study's trials in plan order; empty for a study that was never registered."""

    @abstractmethod
    def states(self, trial_ids: Collection[str]) -> dict[str, TrialState]:
        """The state of each of these trials that the store knows."""

    @abstractmethod
    def lacking(self, key: StudyKey, measurements: Collection[str]) -> dict[str, list[str]]:
        """Which of these measurements ("name@version") each done trial of the study has not got: by trial id in plan
        order, the names in the given order, trials that have all of them left out. Reads no metrics.

        Raises ValueError for a measurement not called "name@version".
        """

    @abstractmethod
    def begin_run(self, run: RunRecord) -> int:
        """Record that a run of the command starts now; returns its id."""

    @abstractmethod
    def end_run(self, run_id: int) -> None:
        """Record that a run ends now."""

    @abstractmethod
    def claim(self, trial_ids: Sequence[str], *, owner: str, lease_s: float) -> list[str]:
        """Take trials for `owner` until `lease_s` seconds from now; returns those it got, in the given order.

        It gets those that are planned, those running whose lease has run out, and those it owns already. Each one got
        counts as one more attempt.
        """

    @abstractmethod
    def renew(self, owner: str, lease_s: float) -> int:
        """Extend the lease of all that `owner` runs to `lease_s` seconds from now; returns how many those are."""

    @abstractmethod
    def release(self, trial_ids: Collection[str], *, owner: str) -> int:
        """Give back interrupted trials: those of them that `owner` runs become planned; returns how many did."""

    @abstractmethod
    def expire(self, owner: str) -> int:
        """Give back all that `owner`, known to be dead, was running; returns how many became planned."""

    @abstractmethod
    def owners(self) -> list[str]:
        """Who has running trials, in alphabetical order."""

    @abstractmethod
    def ask_to_stop(self, what: StudyKey | str) -> None:
        """Ask whoever runs the study, or the trial of this id, to stop it; runs that begin later are not meant."""

    @abstractmethod
    def requests(self, key: StudyKey, run_id: int) -> Requests:
        """What was asked since the run began, by the store's clock, and when the study was planned last."""

    @abstractmethod
    def record_epoch(self, trial_id: str, epoch: EpochMetrics) -> None:
        """Record one epoch; an epoch recorded before is replaced, since a resumed trial repeats some."""

    @abstractmethod
    def record_epochs(self, epochs: Mapping[str, Sequence[EpochMetrics]]) -> None:
        """Record epochs of several trials (by trial_id). Those of done trials are left as they are."""

    @abstractmethod
    def record(self, outcome: TrialOutcome, *, run_id: int, spectrum: np.ndarray | None) -> bool:
        """Record a trial's end: state, cause, environment, epochs, measurements, spectrum, all or nothing.

        The outcome's epochs, where it lists any, and its measurements replace what earlier attempts left. `spectrum` is
        one-dimensional, in float64. Returns False, having written nothing, for a trial that was done already.
        Raises ValueError for a value that is not finite, a measurement not called "name@version", and a metric name
        that occurs in two measurements.
        """

    @abstractmethod
    def add_measurement(
        self,
        trial_id: str,
        name_at_version: str,
        metrics: Mapping[str, Metric],
        *,
        run_id: int,
        spectrum: np.ndarray | None = None,
    ) -> bool:
        """Add a measurement taken later to a done trial; returns False, having written nothing, if it has that one.

        Raises ValueError as `record` does, for a trial that is not done, and for a spectrum unlike the one stored.
        """

    @abstractmethod
    def fail(self, trial_id: str, *, cause: str, run_id: int) -> bool:
        """Mark a trial failed for a cause (one sentence); returns False, having written nothing, for a done trial."""

    @abstractmethod
    def reset(self, trial_ids: Collection[str], states: Sequence[TrialState] = LOST) -> list[str]:
        """Make those of these trials that are in `states` planned again; returns which, in the given order.

        Their cause and measurements go; their epochs stay until the next attempt replaces them. Raises ValueError for
        the states done (it never changes) and running (see `release`).
        """

    @abstractmethod
    def results(self, key: StudyKey) -> list[dict[str, Any]]:
        """One dict a trial in plan order, for a table.

        Keys: trial_id, name, place, state, attempt, cause, config (nested), metrics (flat, over all measurements; of
        several versions of one measurement, the latest has the last word).
        """

    @abstractmethod
    def epochs(self, trial_id: str) -> list[EpochMetrics]:
        """The trial's epochs in order."""

    @abstractmethod
    def spectrum(self, trial_id: str) -> np.ndarray | None:
        """The trial's singular values, float64, as recorded; None where there are none."""

    @abstractmethod
    def spectra(self, key: StudyKey) -> dict[str, np.ndarray]:
        """The singular values of those of the study's trials that have some, by trial id, as `spectrum` gives them."""

    @abstractmethod
    def environment(self, trial_id: str) -> dict[str, str]:
        """Code and package versions, host and device of the attempt that was recorded; empty before."""

    @abstractmethod
    def environments(self, key: StudyKey) -> dict[str, dict[str, str]]:
        """The environments of those of the study's trials that have one, by trial id, as `environment` gives them."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections. A closed store must not be used again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
