"""Sweeps of a user's own code, and of a program, that tests kill and repeat."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from typing_extensions import override

from tests.kills.typed import Typed
from tests.kills.typed_sweep import Round, TypedSweep, Undisturbed
from tests.support import own_study

KILLS, SPAN_S, VICTIMS = 5, 2.0, ("worker", "driver")
"""Kills of a round, longest time between an epoch and the next kill."""
EPOCHS = own_study.Mlp.model_fields["epochs"].default
PROGRAM = f"""import json, os, random, sys, time
from pathlib import Path

rate, seed = float(sys.argv[1]), int(sys.argv[2])
folder = Path(os.environ["SWEEP_TRIAL_DIR"])
state, diary = folder / "state.json", (folder / "diary.txt").open("a")
first, weight = json.loads(state.read_text()) if state.exists() else (0, 1.0)
print("start", first, int(state.exists()), file=diary, flush=True)
for epoch in range(first, {EPOCHS}):
    time.sleep(0.2)
    weight -= rate * (weight - random.Random(1000 * seed + epoch).random())
    print(epoch, file=diary, flush=True)
    print(json.dumps({{"epoch": epoch, "loss": weight**2}}), flush=True)
    (folder / "new.json").write_text(json.dumps([epoch + 1, weight]))
    (folder / "new.json").replace(state)
print(json.dumps({{"accuracy": 1 - weight**2}}))
"""
STUDY = """import sys
from search_spaces.study import Study
from trainables.config import Command

STUDY = Study(
    name="chaos",
    trials=lambda: [
        Command([sys.executable, "train.py", "{rate}", "{seed}"], files=["train.py"], rate=rate)
        for rate in (0.1, 0.2, 0.3, 0.4)
    ],
    seeds=2, metric="accuracy", mode="max",
)
"""


class OwnSweep(TypedSweep):
    ARGUMENTS = ()
    TEXT = Path(own_study.__file__).read_text().replace('"own"', '"chaos"')

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, study=self.TEXT, **options)

    def attempts(self) -> list[list[list[int]]]:
        """Return the attempts of each trial: first epoch, number of checkpoints, epochs trained."""
        return [
            [list(map(int, part.split())) for part in diary.split("start")[1:]]
            for diary in self.diaries()
        ]

    def diaries(self) -> list[str]:
        return [path.read_text() for path in self.storage.glob("trials/*/*/files/diary.txt")]

    @override
    def troubles(self, table: list[dict[str, str]], limit_s: float) -> list[str]:
        troubles = super().troubles(table, limit_s)
        for trial in self.attempts():
            for first, checkpoints, *epochs in trial:
                if checkpoints and not first:
                    troubles.append("checkpoint not used")
                if epochs != list(range(first, first + len(epochs))):
                    troubles.append(f"epochs {epochs} after {first}")
            if first + len(epochs) != EPOCHS:
                troubles.append("training did not end")
        return troubles


class CommandSweep(OwnSweep):
    TEXT = STUDY

    @override
    def type(self, *options: str, **more: Any) -> Typed:
        self.study.with_name("train.py").write_text(PROGRAM)
        return super().type(*options, **more)


def kill_often(
    sweep: OwnSweep, undisturbed: Undisturbed, chance: random.Random, limit: int
) -> Round:
    """Kill running workers and drivers `limit` times, and repeat the command until it ends."""
    part, kills, status = Round("own"), 0, None
    while status != 0 and not part.troubles:
        typed = sweep.type()
        while typed.runs() and kills < limit:
            lines = sweep.diaries()
            while typed.runs() and sweep.diaries() == lines:
                time.sleep(0.05)
            time.sleep(chance.uniform(0, SPAN_S))
            kills += typed.runs() and sweep.kill(chance.choice(VICTIMS), typed, chance)
        if (status := typed.status(undisturbed.limit_s)) is None:
            part.troubles.append(f"hung: {typed.text[-300:]}")
        part.troubles += typed.tracebacks()
    part.troubles += sweep.troubles(undisturbed.table, undisturbed.limit_s)
    attempts = sweep.attempts()
    trained = sum(len(epochs) for trial in attempts for _, _, *epochs in trial)
    part.kind = (
        f"{kills} kills; {sum(map(len, attempts)) - len(attempts)} trials resumed, "
        f"{sum(first > 0 for trial in attempts for first, *_ in trial)} from a checkpoint; "
        f"{trained - EPOCHS * len(attempts)} of {trained} epochs trained again"
    )
    return part
