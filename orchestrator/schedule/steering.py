"""What changes around a running sweep: machines that come and go, requests to stop, trials added to its study."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from orchestrator.cluster.interrupt import Interrupt
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.other_drivers import POLL_S
from orchestrator.store.records import PlannedTrial, Requests, StudyKey
from orchestrator.store.store import Store
from orchestrator.watch.listener import Listener
from trainables.config import TrialConfig
from trainables.config.kinds import output_layer_of, read_config
from trainables.config.output_layer import CustomConfig
from trainables.corpora import CorpusIdentity
from trainables.runtime import Runtime

Pool = tuple[int | None, Collection[str]]
"""How many packs fit on the machines at hand, None where none does, and their addresses."""


def obey(store: Store, key: StudyKey, run_id: int, interrupt: Interrupt, listener: Listener) -> Requests:
    """What was asked of the study since this run of it began; where that is to stop, the interrupt is set."""
    asked = store.requests(key, run_id)
    if asked.stop_study:
        listener.note("Stopping, as `sweep.py stop` asked.")
        interrupt.requested = True
    return asked


@dataclass(frozen=True, kw_only=True)
class Followed:
    """The study whose requests a sweep follows."""

    key: StudyKey
    known: Collection[str] | None
    """The study's trials, by id, when this sweep was planned. Those that another command adds later are run, too; None:
    they are not."""


class Steering:
    """Looks every 2 s, on the driver's main thread."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        interrupt: Interrupt,
        listener: Listener,
        *,
        store: Store,
        run_id: int,
        followed: Followed | None,
        pool: Callable[[], Pool],
        corpus: CorpusIdentity | None,
        runtime: Runtime,
    ) -> None:
        """`pool` says how many packs fit at a time, and on which machines."""
        self._dispatcher, self._interrupt, self._listener = dispatcher, interrupt, listener
        self._store, self._run_id, self._followed = store, run_id, followed
        self._pool, self._corpus, self._runtime = pool, corpus, runtime
        self._waits = False
        self._planned_at: datetime | None = None
        self._next_s = 0.0

    def look(self) -> None:
        """Apply what has changed, if the last look is long enough ago."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + POLL_S
        self._look_at_machines()
        if self._followed is not None:
            self._follow(self._followed)

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

    def _follow(self, followed: Followed) -> None:
        asked = obey(self._store, followed.key, self._run_id, self._interrupt, self._listener)
        if asked.stop_study:
            return
        self._dispatcher.stop(asked.stop_trials)
        if followed.known is not None and asked.planned_at != self._planned_at:
            self._planned_at = asked.planned_at
            rows = [row for row in self._store.trials(followed.key) if row.state == "planned"]
            new = [row.planned() for row in rows if row.trial_id not in followed.known]
            self._dispatcher.add([trial for trial in new if self._can_run(trial)])

    def _can_run(self, trial: PlannedTrial) -> bool:
        """Whether the trial reads the text that this run has, and its output layer, if it is one of the user's own, is
        among those that came with it."""
        config, corpus = read_config(trial.config), self._corpus
        if isinstance(config, TrialConfig) and corpus is not None and config.corpus.sha256 != corpus.sha256:
            return False
        layer = output_layer_of(config)
        digests = {hashlib.sha256(file.text.encode()).hexdigest() for file in self._runtime.layer_files}
        return not isinstance(layer, CustomConfig) or layer.sha256 in digests
