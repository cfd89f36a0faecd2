"""Trials for scheduling tests: no training, but real files, exceptions and deaths.

The seed, rounded down to hundreds, selects a trial's behaviour. Starts and ends go to one
append-only file, which survives the death of any process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.study_work import StudyWork
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.records import PlannedTrial, StudyKey
from orchestrator.store.store import Store
from orchestrator.worker import TrialFunctions
from tests.support.store_rows import RUN, epoch
from trainables.config import CorpusConfig, SoftmaxConfig, TrialConfig
from trainables.errors import UserError
from trainables.trial_folder import EpochMetrics, TrialFolder, TrialOutcome

SOUND, RAISES, DIVERGES, EXITS, KILLED_ONCE, BAD_INPUT, SLOW, LONG, HELD = range(0, 900, 100)
STANDS = 1000
"""A trial that hangs. Its number is not 900, because `scripted_measurements` uses 900."""
STEPS = 4
SLOW_STEP_S, LONG_STEP_S = 0.3, 2.0
PAUSES = {SLOW: SLOW_STEP_S, LONG: LONG_STEP_S}
HELD_S = 120.0
"""Seconds after which a waiting trial continues, and with it all other waiting trials."""


def planned(seeds: Sequence[int]) -> list[PlannedTrial]:
    corpus = CorpusConfig(name="none", sha256="0" * 64)
    configs = [
        TrialConfig(seed=seed, corpus=corpus, output_layer=SoftmaxConfig()) for seed in seeds
    ]
    return [PlannedTrial.of(config, f"seed={config.seed}") for config in configs]


def log_lines(storage: Path) -> list[str]:
    path = storage / "log.txt"
    return path.read_text().splitlines() if path.exists() else []


def run_scripted(
    config: TrialConfig, *, directory: Path, on_epoch: Callable[[EpochMetrics], None], **_: Any
) -> TrialOutcome:
    behaviour = config.seed - config.seed % 100
    folder = TrialFolder(directory, config.trial_id)
    with folder.locked():
        done = folder.outcome()
        if done is not None:
            return done
        checkpoint = directory / "step.txt"
        first = int(checkpoint.read_text()) if checkpoint.exists() else 0
        log(directory, f"start {config.seed} {first}")
        for step in range(first, STEPS):
            if step == 2:
                misbehave(behaviour, again=first > 0)
            if behaviour in PAUSES:
                time.sleep(PAUSES[behaviour])
            write(checkpoint, str(step + 1))
            on_epoch(epoch(step + 1))
        outcome = folder.write_result(_outcome(config, behaviour), None)
        log(directory, f"end {config.seed}")
        return outcome


def run_where(config: TrialConfig, *, directory: Path, **_: Any) -> TrialOutcome:
    log(
        directory, f"{type(config.output_layer).__name__} {ray.get_runtime_context().get_node_id()}"
    )
    behaviour = config.seed - config.seed % 100
    time.sleep(PAUSES.get(behaviour, SLOW_STEP_S))
    if behaviour == HELD:
        go_on, deadline_s = directory.parents[2] / "go-on", time.monotonic() + HELD_S
        while not go_on.exists() and time.monotonic() < deadline_s:
            time.sleep(0.1)
        go_on.touch()
    return _outcome(config, SOUND)


def misbehave(behaviour: int, *, again: bool) -> None:
    if behaviour == RAISES:
        raise RuntimeError("the weights are on strike\nand this line is for the log")
    if behaviour == BAD_INPUT:
        raise UserError("The folder has no train.txt: put one there.")
    if behaviour == STANDS:
        time.sleep(SLOW_STEP_S * 4)  # allow one heartbeat
        ctypes.PyDLL(None).sleep(10**6)  # holds the GIL
    if behaviour == EXITS:
        os._exit(9)
    if behaviour == KILLED_ONCE and not again:
        os.kill(os.getpid(), signal.SIGKILL)


def _outcome(config: TrialConfig, behaviour: int) -> TrialOutcome:
    epochs = tuple(map(epoch, range(1, STEPS + 1)))
    if behaviour == DIVERGES:
        return TrialOutcome(
            trial_id=config.trial_id,
            state="diverged",
            cause="The loss is not finite.",
            epochs=epochs,
        )
    metrics = {"count@1": {"count": STEPS}}
    return TrialOutcome(trial_id=config.trial_id, state="done", measurements=metrics, epochs=epochs)


def write(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    os.replace(part, path)


def log(directory: Path, line: str) -> None:
    descriptor = os.open(directory.parents[2] / "log.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def work_in(
    folder: Path, store: Store, options: Mapping[str, Any] | None = None, **changes: Any
) -> StudyWork:
    fields: dict[str, Any] = {
        "store": store,
        "run_id": store.begin_run(RUN),
        "options": RunOptions(storage=FolderStorage(folder), **(options or {})),
        "seconds_per_trial": 0.3,
        "study": StudyKey(study="scripted", scale="smoke", corpus="none"),
        "functions": TrialFunctions(run_trial=run_scripted),
    }
    return StudyWork(**{**fields, **changes})
