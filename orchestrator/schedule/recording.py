"""Record workers' result files in the store, which receives results in no other way.

A worker writes each result to a file before it reports the result. If the report is lost, a later
run records the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from orchestrator.guard import patient
from orchestrator.storage import AWAY_S, Storage, patiently
from orchestrator.store import OPEN, PlannedTrial, Store
from trainables.trial_folder import DamagedFileError, TrialOutcome, measurement_files

T = TypeVar("T")


def wait_for_storage(action: Callable[[], T]) -> T:
    """Run `action` and return its result; wait if the object store is unreachable.

    The guard process does not restart the command during the wait.
    """
    with patient(2 * AWAY_S):
        return patiently(action)


class Recorder:
    """Reads the result files of trials and records them in the store."""

    def __init__(
        self,
        store: Store,
        storage: Storage,
        run_id: int | None,
        attempts: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`attempts` maps trial ids to attempt numbers. Omit it if no trial is claimed."""
        self._store, self._storage, self._run_id = store, storage, run_id
        self._attempts = attempts

    def recover(
        self,
        trials: Sequence[PlannedTrial],
        *,
        note: Callable[[str], None],
        may_be_pruned: Callable[[PlannedTrial], bool] = lambda trial: False,  # noqa: ARG005
    ) -> list[tuple[TrialOutcome, bool]]:
        """Record results that dead drivers or workers left as files.

        Reads the files of planned and running trials. Returns each outcome, and whether the store
        accepted it. A trial that was stopped early counts only if `may_be_pruned`. Damaged result
        files are renamed with a note; their trials run again.
        """
        states = self._store.states([trial.trial_id for trial in trials])
        open_trials = [trial for trial in trials if states.get(trial.trial_id) in OPEN]
        self._storage.bring([trial.trial_id for trial in open_trials])
        outcomes = []
        for trial in open_trials:
            try:
                result = self._storage.trial(trial.trial_id).result()
            except DamagedFileError as error:
                note(f"{trial.name} runs again: {error}.")
                self._storage.set_aside_result(trial.trial_id)
                continue
            if result is not None and (result[0].state != "pruned" or may_be_pruned(trial)):
                outcomes.append((result[0], self._record(*result)))
        return outcomes

    def _record(self, outcome: TrialOutcome, spectrum: np.ndarray | None) -> bool:
        attempt = self._attempts.get(outcome.trial_id)
        return self._store.record(outcome, run_id=self._run_id, spectrum=spectrum, attempt=attempt)

    def outcome(self, outcome: TrialOutcome) -> bool:
        """Record a reported outcome and its spectrum; return whether the store accepted it.

        If the spectrum is damaged, renames the result file and raises DamagedFileError, because a
        done trial cannot get its spectrum later.
        """
        if outcome.state != "done":
            return self._record(outcome, None)
        wait_for_storage(lambda: self._storage.bring([outcome.trial_id]))
        try:
            spectrum = self._storage.trial(outcome.trial_id).spectrum(outcome)
        except DamagedFileError:
            self._storage.set_aside_result(outcome.trial_id)
            raise
        return self._record(outcome, spectrum)

    def measurements(self, unmeasured: Mapping[str, Iterable[str]]) -> tuple[int, dict[str, str]]:
        """Record measurement files of done trials.

        `unmeasured` maps trial ids to names of measurements. Returns the number of new
        measurements, and problems by trial id.
        """
        self._storage.bring(unmeasured, measurement_files(set[str]().union(*unmeasured.values())))
        count, problems = 0, {}
        for trial_id, names in unmeasured.items():
            try:
                for name in names:
                    measurement = self._storage.trial(trial_id).measurement(name)
                    if measurement is not None:
                        metrics, spectrum = measurement
                        count += self._store.add_measurement(
                            trial_id, name, metrics, spectrum=spectrum
                        )
            except (ValueError, DamagedFileError) as error:
                problems[trial_id] = f"its measurements cannot be recorded: {error}"
        return count, problems

    def unreported_measurements(
        self, trial_ids: Sequence[str], names: Sequence[str]
    ) -> list[TrialOutcome]:
        """Record measurement files of done trials; return outcomes of the trials with all `names`.

        If a file cannot be recorded, its trial is measured again, and the problem is reported then.
        """
        _, problems = self.measurements(dict.fromkeys(trial_ids, names))
        folder_of = self._storage.trial
        return [
            TrialOutcome(trial_id=trial_id, state="done")
            for trial_id in trial_ids
            if trial_id not in problems and all(map(folder_of(trial_id).measurement, names))
        ]
