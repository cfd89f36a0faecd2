"""What changes around a running sweep: machines that come and go, requests to stop, trials added to its study."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from orchestrator.schedule.claims import POLL_S
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.study_work import StudyWork
from orchestrator.store import PlannedTrial, Store, StudyKey
from orchestrator.watch import Listener
from trainables.config import CustomConfig, TextFile, TrialConfig, output_layer_of, read_config

Pool = tuple[int | None, Collection[str]]
"""How many packs fit on the machines at hand, None where none does, and their addresses."""


class Steering:
    """Looks every 2 s, on the driver's main thread."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        listener: Listener,
        *,
        store: Store,
        run_id: int,
        work: StudyWork,
        pool: Callable[[], Pool],
        layer_files: Sequence[TextFile],
    ) -> None:
        """`pool` says how many packs fit at a time, and on which machines; `layer_files` came with this run."""
        self._dispatcher, self._listener = dispatcher, listener
        self._store, self._run_id, self._work = store, run_id, work
        self._pool, self._layer_files = pool, layer_files
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
        slots, addresses = self._pool()
        self._dispatcher.machines_left(addresses)
        if slots is None and not self._waits:
            self._listener.note("There is no machine any more that a trial fits on: waiting for one.")
        self._waits = slots is None
        before = self._dispatcher.slots
        if slots is None or slots == before:
            return
        self._listener.note(f"Machines came or went: at a time, {slots} trials fit now, {before} before.")
        self._dispatcher.resize(slots)

    def _follow(self, study: StudyKey) -> bool:
        """Do what was asked of the study since this run of it began; returns whether it is to stop."""
        requests = self._store.requests(study, self._run_id)
        if requests.stop_study:
            self._listener.note("Stopping, as `sweep.py stop` asked.")
            return True
        self._dispatcher.stop(requests.stop_trials)
        known = self._work.known_ids
        if known is not None and requests.planned_at != self._planned_at:
            self._planned_at = requests.planned_at
            rows = [row for row in self._store.trials(study) if row.state == "planned"]
            new = [row.planned() for row in rows if row.trial_id not in known]
            self._dispatcher.add([trial for trial in new if self._can_run(trial)])
        return False

    def _can_run(self, trial: PlannedTrial) -> bool:
        """Whether the trial reads the text that this run has, and its output layer, if it is one of the user's own, is
        among those that came with it."""
        config, corpus = read_config(trial.config), self._work.corpus
        if isinstance(config, TrialConfig) and corpus is not None and config.corpus.sha256 != corpus.sha256:
            return False
        layer = output_layer_of(config)
        digests = {file.sha256 for file in self._layer_files}
        return not isinstance(layer, CustomConfig) or layer.sha256 in digests
