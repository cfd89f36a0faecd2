"""Tests that a killed command, when repeated, gives the same table as an undisturbed sweep.

Signals come at random moments, or SIGKILL comes between two durable writes.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import random
import re
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from orchestrator.storage import FolderStorage
from orchestrator.sweep import rebuild_store
from tests.kills.conftest import Keep
from tests.kills.typed import Typed
from tests.kills.typed_sweep import (
    LATER,
    OPTIONS,
    SEED,
    STUDY,
    VICTIMS,
    Round,
    TypedSweep,
    Undisturbed,
    undisturbed_sweep,
)
from tests.support.scratch import mentioning
from tests.support.store_rows import tables

pytestmark = pytest.mark.timeout(0)  # each round has its own limit


SPAN = (0.0, 1.0)
"""Earliest and latest moment of a kill, as fractions of an undisturbed sweep's duration."""
BUSY = (0.2, 0.6)
"""Most trials run between these moments, given as fractions of a sweep's duration."""


def test_signal_and_kills_keep_the_table(undisturbed: Undisturbed, tmp_path: Path) -> None:
    chance, part = random.Random(SEED), victim(SEED)
    with TypedSweep(tmp_path / "sweep", *options(part), "--max-concurrent", "1") as sweep:
        kill_guard(sweep, undisturbed, chance, BUSY)
        part.troubles = interrupt(Round("Ctrl-C"), KINDS[0], sweep, undisturbed, chance, BUSY)
        kill_at_random(part, sweep, undisturbed, chance, BUSY)
        assert part.troubles + rebuilt(sweep) == [], f"{part.kind}, seed {SEED}"


def victim(number: int) -> Round:
    return Round(VICTIMS[number % len(VICTIMS)])


def options(part: Round) -> tuple[str, ...]:
    return (*OPTIONS, *(["--ray-dashboard"] if "ashboard" in part.kind else []))


@pytest.mark.chaos(0, 200)
def test_killing_any_process_keeps_the_table(
    undisturbed: Undisturbed, tmp_path: Path, rounds: int, keep: Keep
) -> None:
    chance, parts = random.Random(SEED), []
    for number in range(rounds):
        part = victim(number + SEED)
        with TypedSweep(tmp_path / str(number), *options(part)) as sweep:
            kill_at_random(part, sweep, undisturbed, chance)
            if number % 10 == 0 and not part.troubles:
                part.troubles += rebuilt(sweep)
        keep("SIGKILL at a random moment", part)
        parts.append(part)
    assert [part for part in parts if part.troubles] == [], f"seed {SEED}"


def kill_at_random(
    part: Round,
    sweep: TypedSweep,
    undisturbed: Undisturbed,
    chance: random.Random,
    span: tuple[float, float] = SPAN,
) -> None:
    for _ in range(10):
        typed = sweep.type()
        time.sleep(chance.uniform(*span) * undisturbed.seconds)
        last_s = typed.start_s + undisturbed.limit_s
        while typed.runs() and not sweep.alive(part.kind, typed) and time.monotonic() < last_s:
            time.sleep(0.1)
        if sweep.kill(part.kind, typed, chance):
            return sweep.judge(part, typed, undisturbed)
        part.troubles += typed.troubles(undisturbed.limit_s)
        if part.troubles:
            return None
        sweep.forget()
    part.troubles.append("no process ran long enough to be killed")
    return None


def rebuilt(sweep: TypedSweep) -> list[str]:
    new = f"sqlite:///{sweep.storage}/new.db"
    rebuild_store(new, FolderStorage(sweep.storage), print)
    before, after = tables(f"sqlite:///{sweep.storage}/results.db"), tables(new)
    return [
        f"another table {name} after rebuilding" for name in before if before[name] != after[name]
    ]


@pytest.mark.chaos(0, 10)
def test_killed_guard_leaves_nothing(undisturbed: Undisturbed, tmp_path: Path, rounds: int) -> None:
    chance = random.Random(SEED)
    for number in range(rounds):
        with TypedSweep(tmp_path / str(number), *OPTIONS) as sweep:
            kill_guard(sweep, undisturbed, chance)


def kill_guard(
    sweep: TypedSweep,
    undisturbed: Undisturbed,
    chance: random.Random,
    span: tuple[float, float] = SPAN,
) -> None:
    typed = sweep.type()
    time.sleep(chance.uniform(*span) * undisturbed.seconds)
    while typed.runs() and not sweep.kill("guard", typed, chance):
        time.sleep(0.1)
    deadline_s = time.monotonic() + 15
    while sweep.left_behind() and time.monotonic() < deadline_s:
        time.sleep(0.3)
    assert sweep.left_behind() == [], f"seed {SEED}"


STATUSES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
COMMAND, GROUP, TWICE = "to the command", "to its group", "to its group, twice"
SCANCEL = "to all, as scancel does"
KINDS = [
    (number, to, terminal)
    for number, to, terminal in itertools.product(STATUSES, (GROUP, COMMAND, TWICE), (True, False))
] + [(signal.SIGTERM, SCANCEL, terminal) for terminal in (True, False)]
ANSWER = re.compile(r"Stopping|Interrupted|Ended at once|did not stop")
ANSWERED_S, OUT_S, AT_ONCE_S, SLURM_KILLS_S = 1.0, 10.0, 1.0, 30.0
SECOND_S = {signal.SIGINT: 0.3, signal.SIGTERM: 1.1, signal.SIGHUP: 1.1}
"""Seconds between two signals. If they came faster, the command would count them as one signal."""


@pytest.mark.chaos(0, 50)
def test_signal_loses_nothing(
    undisturbed: Undisturbed, tmp_path: Path, rounds: int, keep: Keep
) -> None:
    chance, parts = random.Random(SEED), []
    kinds = itertools.cycle([KINDS[0], *chance.sample(KINDS[1:], len(KINDS) - 1)])
    for index, kind in enumerate(itertools.islice(kinds, rounds)):
        number, to, terminal = kind
        part = Round(f"{number.name} {to}" + " in a terminal" * terminal)
        with TypedSweep(tmp_path / str(index), *OPTIONS) as sweep:
            part.troubles = interrupt(part, kind, sweep, undisturbed, chance)
            part.troubles += sweep.type().troubles(undisturbed.limit_s)
            part.troubles += sweep.troubles(undisturbed.table, undisturbed.limit_s)
        keep("Signals at a random moment", part)
        parts.append(part)
    assert [part for part in parts if part.troubles] == [], f"seed {SEED}"


def interrupt(
    part: Round,
    kind: tuple[signal.Signals, str, bool],
    sweep: TypedSweep,
    undisturbed: Undisturbed,
    chance: random.Random,
    span: tuple[float, float] = SPAN,
) -> list[str]:
    while True:
        typed = sweep.type(terminal=kind[2])
        slowness = undisturbed.slowness
        time.sleep(max(0.1 * slowness, chance.uniform(*span) * undisturbed.seconds))
        if typed.runs():
            break
        assert typed.troubles(undisturbed.limit_s) == []
        sweep.forget()
    troubles = signalled(part, kind, sweep, typed, slowness)
    sweep.kill_all()
    return troubles


def signalled(
    part: Round,
    kind: tuple[signal.Signals, str, bool],
    sweep: TypedSweep,
    typed: Typed,
    slowness: float,
) -> list[str]:
    number, to, terminal = kind
    before, sent_s, limit_s = len(typed.text), time.monotonic(), OUT_S * slowness
    with suppress(ProcessLookupError):
        if to == COMMAND:
            os.kill(typed.pid, number)
        elif to == SCANCEL:
            for pid in mentioning(sweep.temporary):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        else:
            os.killpg(typed.pid, number)
            if to == TWICE and typed.status(SECOND_S[number]) is None:
                limit_s = time.monotonic() - sent_s + AT_ONCE_S * slowness
                os.killpg(typed.pid, number)
    status = typed.status(SLURM_KILLS_S * slowness)
    part.seconds = time.monotonic() - sent_s
    printed, reply = typed.text[:before], typed.text[before:]
    answered_s = (s - sent_s for s, text in typed.texts if s >= sent_s and ANSWER.search(text))
    was_over = "All reports:" in printed
    deaf = was_over or (terminal and number == signal.SIGHUP)  # the command's terminal is closed
    troubles = {
        "not out in time": status is None or part.seconds > limit_s,
        f"status {status}": status != STATUSES[number] and not (was_over and status == 0),
        "not answered in time": not deaf and next(answered_s, 1e9) > ANSWERED_S * slowness,
        "traceback": "Traceback" in reply,
        "left running": bool(sweep.running()),
    }
    return [f"{trouble}: {reply[-500:]!r}" for trouble, is_so in troubles.items() if is_so]


class Step(NamedTuple):
    target: str
    once: bool = False
    study: str = STUDY


FOLDER, STORE = "trainables.trial_folder.folder:", "orchestrator.store."
STEPS = (
    Step(f"{STORE}studies:Studies.register", once=True),
    Step("orchestrator.storage.storage:Storage.write_study", once=True),
    Step(f"{STORE}studies:Studies.begin_run", once=True),
    Step(f"{STORE}claims:Claims.claim"),
    Step(f"{STORE}results:Results.record_epochs"),
    Step(f"{STORE}results:Results.record"),
    Step(f"{STORE}studies:Studies.end_run", once=True),
    Step("orchestrator.report.build:build_report", once=True),
    Step("orchestrator.report.index:write_index", once=True),
    Step(f"{FOLDER}TrialFolder.take_over"),
    Step("trainables.trial_folder.checkpoint:Checkpoints._write"),
    Step("trainables.trial.trial_run:save_tensors"),
    Step(f"{FOLDER}write_vector"),
    Step(f"{FOLDER}TrialFolder.write_result"),
    Step(f"{FOLDER}TrialFolder.forget_checkpoints"),
    Step("trainables.trial_folder.fence:Fence.drop"),
    Step("trainables.trial_folder.files:_sync_folder"),
    Step(f"{FOLDER}TrialFolder.write_measurement", study=LATER),
    Step(f"{STORE}results:Results.add_measurement", study=LATER),
)
AT_STEPS = list(itertools.product(STEPS, ("before", "after"), range(1, 6)))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.target.rpartition(":")[2])
def test_every_kill_point_is_called(step: Step) -> None:
    module, _, path = step.target.partition(":")
    assert callable(functools.reduce(getattr, path.split("."), importlib.import_module(module)))


@pytest.fixture(scope="module")
def measured_later(
    tmp_path_factory: pytest.TempPathFactory, undisturbed: Undisturbed
) -> Undisturbed:
    folder = tmp_path_factory.mktemp("later")
    storage = shutil.copytree(undisturbed.storage, folder / "results")
    return undisturbed_sweep(folder, study=LATER, storage=storage)


@pytest.mark.chaos(0, len(AT_STEPS))
def test_kill_between_writes_loses_nothing(
    undisturbed: Undisturbed, measured_later: Undisturbed, tmp_path: Path, rounds: int, keep: Keep
) -> None:
    parts = []
    for number, (step, when, call) in enumerate(random.Random(SEED).sample(AT_STEPS, rounds)):
        part = Round(f"{when} {step.target.rpartition(':')[2]}")
        goal = measured_later if step.study == LATER else undisturbed
        with TypedSweep(tmp_path / str(number), *OPTIONS, study=step.study) as sweep:
            for calls in range(1 if step.once else call, 0, -1):
                if step.study == LATER:
                    shutil.copytree(undisturbed.storage, sweep.storage)
                if kill_at_step(part, sweep, f"{when} {calls} {step.target}", goal):
                    break
                sweep.forget()
            else:
                part.troubles.append("no process called this function")
        keep("SIGKILL between two durable writes", part)
        parts.append(part)
    assert [part for part in parts if part.troubles] == [], f"seed {SEED}"


def kill_at_step(part: Round, sweep: TypedSweep, when: str, goal: Undisturbed) -> bool:
    """Kill the process that makes the function call `when`, which has the form of CHAOS_STEP.

    Return False if no process makes this call and the command succeeds.
    """
    mark = sweep.storage.parent / "mark"
    typed = sweep.type(CHAOS_STEP=when, CHAOS_MARK=str(mark))
    last_s = typed.start_s + goal.limit_s
    while typed.runs() and not mark.exists() and time.monotonic() < last_s:
        time.sleep(0.05)
    if mark.exists():
        sweep.judge(part, typed, goal)
    else:
        part.troubles += typed.troubles(goal.limit_s)
    return mark.exists() or bool(part.troubles)
