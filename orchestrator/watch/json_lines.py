"""Events of a sweep as lines of JSON on standard output."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from typing_extensions import override

from orchestrator.store import StudyKey
from orchestrator.watch.listener import Listener
from orchestrator.words import json_document
from trainables.trial_folder import Epoch, TrialOutcome


class JsonLines(Listener):
    """Prints the events of one study. docs/json.md lists their keys."""

    def __init__(self, key: StudyKey) -> None:
        self._key = key

    @override
    def event(self, kind: str, content: Mapping[str, object]) -> None:
        fields = {"time": datetime.now(UTC), **vars(self._key), **content}
        print(json_document(kind, fields, indent=None), flush=True)

    @override
    def started(self, trial_id: str, name: str, epoch_count: int | None) -> None:
        fields = {"trial_id": trial_id, "name": name, "epoch_count": epoch_count}
        self.event("trial_started", fields)

    @override
    def epoch(self, trial_id: str, metrics: Epoch) -> None:
        fields = {"epoch": metrics.epoch, "seconds": metrics.seconds, "metrics": metrics.numbers}
        self.event("trial_epoch", {"trial_id": trial_id, **fields})

    @override
    def finished(self, name: str, outcome: TrialOutcome) -> None:
        fields = {"state": outcome.state, "cause": outcome.cause, "metrics": outcome.metrics}
        self.event("trial_ended", {"trial_id": outcome.trial_id, "name": name, **fields})

    @override
    def stopped(self, trial_id: str, name: str) -> None:
        self.event("trial_stopped", {"trial_id": trial_id, "name": name})
