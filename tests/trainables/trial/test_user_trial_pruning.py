from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainables.config import Goal, Mode, Trainable
from trainables.runtime import Runtime
from trainables.trial import run_trial

STEPS: list[int] = []
EPOCHS = 6


__package__ = ""  # classes of trials must be in no package


class Climb(Trainable):
    first_number: int = 0
    epochs: int = EPOCHS

    def train(self, trial: Any) -> dict[str, float]:
        done: dict[str, int] = {"epochs": 0}
        trial.restore(done=done)
        while done["epochs"] < self.epochs:
            STEPS.append(done["epochs"])
            done["epochs"] += 1
            trial.report(done["epochs"] - 1 + self.first_number, score=done["epochs"])
        return {"score": done["epochs"]}


@pytest.mark.parametrize("first_number", [0, 1])
@pytest.mark.parametrize(
    ("mode", "limit", "pruned"), [("max", -4, True), ("max", -3, False), ("min", 2, True)]
)
def test_worse_than_limit_stops_at_rung(
    tmp_path: Path, first_number: int, mode: Mode, limit: float, pruned: bool
) -> None:
    """The score after three epochs is 3, whether epochs are counted from 0 or 1."""
    STEPS.clear()
    config = Climb.model_validate({"first_number": first_number})
    runtime, rule = Runtime(goal=Goal("score", mode)), {3: limit}
    outcome = run_trial(config, directory=tmp_path, runtime=runtime, stop_above=rule)
    assert outcome.state == ("pruned" if pruned else "done")
    assert len(outcome.epochs) == (3 if pruned else EPOCHS)
    whole = run_trial(config, directory=tmp_path, runtime=runtime)
    assert whole.state == "done" and list(range(EPOCHS)) == STEPS, "it resumes after its rung"
