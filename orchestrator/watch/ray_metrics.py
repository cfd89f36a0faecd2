"""A running sweep's metrics in Ray, which Prometheus scrapes from every node.

Ray drops a gauge that is not set again within two reporting intervals (2 x 10 s). The driver sets
only gauges of running trials, so an ended trial's series ends by itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from contextlib import suppress
from statistics import fmean

from ray.util.metrics import Gauge
from typing_extensions import override

from orchestrator.store import Store, StudyKey
from orchestrator.watch.listener import Listener
from trainables.errors import UserError
from trainables.trial_folder import Epoch, EpochMetrics

REFRESH_S = 2.0
VARIANT = ("study", "scale", "corpus")


class SweepMetrics(Listener):
    """Gauges of one study; Ray prefixes their names with `ray_`.

    A running trial's metrics and speed are those of its last reported epoch.
    """

    def __init__(self, key: StudyKey, store: Store) -> None:
        self._key, self._store = key, store
        self._tags = {name: getattr(key, name) for name in VARIANT}
        by_trial = (*VARIANT, "trial")
        self._trials = Gauge("sweep_trials", "Trials of the study by state.", (*VARIANT, "state"))
        self._metric = Gauge(
            "sweep_trial_metric",
            "Metric of a running trial, such as valid_perplexity.",
            (*by_trial, "metric"),
        )
        self._speed = Gauge(
            "sweep_trial_tokens_per_second",
            "Training tokens per second of a running trial.",
            by_trial,
        )
        self._packs = Gauge("sweep_packs", "Packs of trials that workers run.", VARIANT)
        self._pack_size = Gauge(
            "sweep_pack_size", "Mean number of trials in packs that workers run.", VARIANT
        )
        self._names: dict[str, str] = {}
        self._last_epochs: dict[str, Epoch] = {}
        self._refresh_s = 0.0

    @override
    def started(self, trial_id: str, name: str, epoch_count: int | None) -> None:
        self._names[trial_id] = name
        self._last_epochs.pop(trial_id, None)

    @override
    def epoch(self, trial_id: str, metrics: Epoch) -> None:
        self._last_epochs[trial_id] = metrics

    @override
    def refresh(self, pack_sizes: Sequence[int], running: Set[str]) -> None:
        now_s = time.monotonic()
        if now_s < self._refresh_s:
            return
        self._refresh_s = now_s + REFRESH_S
        # Do not end a sweep for a gauge: the next write to the store will report the error.
        with suppress(UserError):
            for summary in self._store.studies():
                if summary.key == self._key:
                    for state, count in summary.counts.items():
                        self._trials.set(count, {**self._tags, "state": state})
        for trial_id in running & self._last_epochs.keys():
            epoch = self._last_epochs[trial_id]
            tags = {**self._tags, "trial": self._names[trial_id]}
            for metric, value in epoch.numbers.items():
                self._metric.set(value, {**tags, "metric": metric})
            if isinstance(epoch, EpochMetrics) and epoch.seconds > 0:
                # All epochs of a trial have the same number of tokens.
                self._speed.set(epoch.tokens / epoch.epoch / epoch.seconds, tags)
        self._packs.set(len(pack_sizes), self._tags)
        if pack_sizes:
            self._pack_size.set(fmean(pack_sizes), self._tags)
