from __future__ import annotations

import sys

from orchestrator.watch.listener import Listener
from trainables.trial_folder.outcome import TrialOutcome


class RecordingListener(Listener):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.starts: list[str] = []
        self.outcomes: dict[str, TrialOutcome] = {}
        self.stopped_names: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(text, file=sys.stderr, flush=True)

    def started(self, trial_id: str, name: str, epoch_count: int | None) -> None:
        assert trial_id not in self.outcomes and (epoch_count is None or epoch_count > 0)
        self.starts.append(name)

    def finished(self, name: str, outcome: TrialOutcome) -> None:
        assert name and outcome.trial_id not in self.outcomes
        self.outcomes[outcome.trial_id] = outcome

    def stopped(self, trial_id: str, name: str) -> None:
        del trial_id
        self.stopped_names.append(name)
