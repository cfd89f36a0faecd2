"""What changes around a running sweep: machines that come and go, requests to stop, trials added to its study."""

from __future__ import annotations

import time
from datetime import datetime

from orchestrator.cluster import address_of, machine_resources, nodes
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.placement import Placement
from orchestrator.schedule.study_work import POLL_S, StudyWork
from orchestrator.store import PlannedTrial, StudyKey
from trainables.config import CustomConfig, TrialConfig, output_layer_of


class Steering:
    """Looks every 2 s, on the driver's main thread."""

    def __init__(self, work: StudyWork, dispatcher: Dispatcher, placement: Placement) -> None:
        self._work, self._dispatcher, self._placement = work, dispatcher, placement
        self._layer_hashes = {file.sha256 for file in work.options.runtime.layer_files}
        self._waits = False
        self._planned_at: datetime | None = None
        self._next_s = 0.0

    def look(self) -> bool:
        """Apply what has changed, if the last look is long enough ago; returns whether the study is to stop."""
        if time.monotonic() < self._next_s:
            return False
        self._next_s = time.monotonic() + POLL_S
        self._look_at_machines()
        return self._work.study is not None and self._follow(self._work.study)

    def _look_at_machines(self) -> None:
        machines = nodes()
        self._placement.update(machine_resources(machines))
        self._dispatcher.attempts.machines_left(set(map(address_of, machines)))
        slots, before = self._placement.slots, self._dispatcher.slots
        note = self._work.listener.note
        if slots is None and not self._waits:
            note("There is no machine any more that a trial fits on: waiting for one.")
        self._waits = slots is None
        if slots is not None and slots != before:
            note(f"Machines came or went: at a time, {slots} trials fit now, {before} before.")
            self._dispatcher.resize(slots)

    def _follow(self, study: StudyKey) -> bool:
        """Do what was asked of the study since this run of it began; returns whether it is to stop."""
        store, known_ids = self._work.store, self._work.known_ids
        requests = store.requests(study, self._work.run_id)
        if requests.stop_study:
            self._work.listener.note("Stopping, as `sweep.py stop` asked.")
            return True
        self._dispatcher.stop(requests.stop_trials)
        if known_ids is not None and requests.planned_at != self._planned_at:
            self._planned_at = requests.planned_at
            rows = [row for row in store.trials(study) if row.state == "planned" and row.trial_id not in known_ids]
            self._dispatcher.add([trial for trial in (row.planned() for row in rows) if self._can_run(trial)])
        return False

    def _can_run(self, trial: PlannedTrial) -> bool:
        """Whether the trial reads the text that this run has, and its output layer, if it is one of the user's own, is
        among those that came with it."""
        config, corpus = trial.validated, self._work.corpus
        if isinstance(config, TrialConfig) and corpus is not None and config.corpus.sha256 != corpus.sha256:
            return False
        layer = output_layer_of(config)
        return not isinstance(layer, CustomConfig) or layer.sha256 in self._layer_hashes
