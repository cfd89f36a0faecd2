"""SIGKILL at a random moment, or exactly between two durable writes, or another signal, of a real
sweep: the same command, typed again where it has to be, ends with the table of a sweep that nobody
disturbed."""

from __future__ import annotations

import functools
import importlib
import itertools
import random
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from orchestrator.cluster.local_node import LATER_S
from orchestrator.storage import FolderStorage
from orchestrator.sweep import rebuild_store
from tests.support.command import wait_for
from tests.support.disturbed import (
    OPTIONS,
    SEED,
    Keep,
    Round,
    Undisturbed,
    judge,
    undisturbed_sweep,
)
from tests.support.signalled import KINDS, signalled
from tests.support.store_rows import tables
from tests.support.typed_sweep import LATER, STUDY, TypedSweep
from tests.support.victims import STARTED_LATER, VICTIMS

pytestmark = pytest.mark.timeout(0)  # a round has its own limit


class Step(NamedTuple):
    """A call of the product before and after which something is durable."""

    what: str
    place: str
    once: bool = False
    """It is called once a sweep."""
    study: str = STUDY


STEPS = (
    Step("study registered", "orchestrator.store.studies:Studies.register", once=True),
    Step(
        "file of the study written", "orchestrator.storage.storage:Storage.write_study", once=True
    ),
    Step("run begun", "orchestrator.store.studies:Studies.begin_run", once=True),
    Step("trials claimed", "orchestrator.store.claims:Claims.claim"),
    Step("epochs recorded", "orchestrator.store.results:Results.record_epochs"),
    Step("result recorded", "orchestrator.store.results:Results.record"),
    Step("run ended", "orchestrator.store.studies:Studies.end_run", once=True),
    Step("report written", "orchestrator.report.build:build_report", once=True),
    Step("list of reports written", "orchestrator.report.index:write_index", once=True),
    Step("fence written", "trainables.trial_folder.folder:TrialFolder.take_over"),
    Step("checkpoint written", "trainables.trial_folder.checkpoint:Checkpoints._write"),
    Step("kept weights written", "trainables.trial.trial_run:save_tensors"),
    Step("spectrum.npy written", "trainables.trial_folder.folder:write_vector"),
    Step("result.json written", "trainables.trial_folder.folder:TrialFolder.write_result"),
    Step("checkpoints removed", "trainables.trial_folder.folder:TrialFolder.forget_checkpoints"),
    Step("fence removed", "trainables.trial_folder.folder:TrialFolder.leave"),
    Step("file named and its folder synced", "trainables.trial_folder.files:_sync_folder"),
    Step(
        "later measurement written",
        "trainables.trial_folder.folder:TrialFolder.write_measurement",
        study=LATER,
    ),
    Step(
        "later measurement recorded",
        "orchestrator.store.results:Results.add_measurement",
        study=LATER,
    ),
)
TIMES = 5
AT_STEPS = [
    (step, when, call)
    for step in STEPS
    for when in ("before", "after")
    for call in range(1, TIMES + 1)
]


@pytest.fixture(scope="module")
def measured_later(
    tmp_path_factory: pytest.TempPathFactory, undisturbed: Undisturbed
) -> Undisturbed:
    """The same storage after the study asked for one more measurement."""
    folder = tmp_path_factory.mktemp("later")
    storage = shutil.copytree(undisturbed.storage, folder / "results")
    return undisturbed_sweep(folder, study=LATER, storage=storage)


@pytest.mark.chaos(1, 200)
def test_whatever_is_killed_the_same_command_ends_with_the_same_table(
    undisturbed: Undisturbed, tmp_path: Path, rounds: int, keep: Keep
) -> None:
    chance, parts = random.Random(SEED), []
    for number in range(rounds):
        victim = VICTIMS[(number + SEED) % len(VICTIMS)]
        with TypedSweep(tmp_path / str(number), *OPTIONS) as sweep:
            part = Round(victim, undisturbed.slowness)
            kill_at_random(part, sweep, undisturbed, chance)
            if number % 10 == 0 and not part.troubles:
                part.troubles += made_again(sweep)
            parts.append(part)
        keep("random-kills", part)
    assert [part for part in parts if part.troubles] == [], f"seed {SEED}"


def kill_at_random(
    part: Round, sweep: TypedSweep, undisturbed: Undisturbed, chance: random.Random
) -> None:
    """Begun anew where the sweep ended, and well, before the moment. Of a process that starts
    later, the moment is a random one from then on."""
    victim, later_s = part.kind, 1.0 if part.kind in STARTED_LATER else LATER_S
    for _ in range(10):
        typed = sweep.type(CHAOS_LATER_S=str(later_s))
        time.sleep(chance.uniform(0, undisturbed.seconds))
        if not sweep.watch.alive(victim, typed.pid):
            last_s = typed.start_s + undisturbed.limit_s
            while (
                typed.runs()
                and not sweep.watch.alive(victim, typed.pid)
                and time.monotonic() < last_s
            ):
                time.sleep(0.1)
            time.sleep(
                chance.uniform(
                    0, max(0.0, undisturbed.seconds - (time.monotonic() - typed.start_s))
                )
            )
        if sweep.watch.kill(victim, typed.pid, chance) is not None:
            part.moment_s = time.monotonic() - typed.start_s
            return judge(part, sweep, typed, undisturbed)
        part.troubles += typed.troubles(undisturbed.limit_s)
        if part.troubles:
            return None
        sweep.forget()
    part.troubles.append(f"no {victim} lived for long enough to be killed")
    return None


def made_again(sweep: TypedSweep) -> list[str]:
    """In which tables a store made from the trial folders is not the one there is."""
    new = f"sqlite:///{sweep.storage}/new.db"
    rebuild_store(new, FolderStorage(sweep.storage), print)
    before, after = tables(f"sqlite:///{sweep.storage}/results.db"), tables(new)
    return [
        f"the table {name} made again is another" for name in before if before[name] != after[name]
    ]


@pytest.mark.chaos(1, 10)
def test_a_killed_guard_leaves_nothing(
    undisturbed: Undisturbed, tmp_path: Path, rounds: int
) -> None:
    chance = random.Random(SEED)
    for number in range(rounds):
        with TypedSweep(tmp_path / str(number), *OPTIONS) as sweep:
            typed = sweep.type(CHAOS_LATER_S=str(chance.uniform(0, LATER_S)))
            time.sleep(chance.uniform(0, undisturbed.seconds))
            while typed.runs() and not sweep.watch.kill("guard", typed.pid, chance):
                time.sleep(0.1)
            wait_for(
                lambda: not sweep.left_behind(), timeout_s=15, what=f"the end of all, seed {SEED}"
            )


@pytest.mark.chaos(1, 50)
def test_a_signal_at_any_moment_is_answered_at_once_and_the_same_command_goes_on(
    undisturbed: Undisturbed, tmp_path: Path, rounds: int, keep: Keep
) -> None:
    """Answered at once, out soon, and nothing is left running."""
    chance = random.Random(SEED)
    kinds = itertools.islice(itertools.cycle(chance.sample(KINDS, len(KINDS))), rounds)
    answers = []
    for number, kind in enumerate(kinds):
        with TypedSweep(tmp_path / str(number), *OPTIONS) as sweep:
            answers.append(signalled(sweep, kind, undisturbed, chance))
        keep("signals", answers[-1])
    assert [answer for answer in answers if answer.troubles] == [], f"seed {SEED}"


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.what)
def test_every_step_is_a_call_of_the_product(step: Step) -> None:
    module, _, path = step.place.partition(":")
    assert callable(functools.reduce(getattr, path.split("."), importlib.import_module(module)))


@pytest.mark.chaos(0, len(AT_STEPS))
def test_killed_between_two_durable_writes_the_same_command_ends_with_the_same_table(
    undisturbed: Undisturbed,
    tmp_path: Path,
    rounds: int,
    keep: Keep,
    request: pytest.FixtureRequest,
) -> None:
    parts = []
    for number, (step, when, call) in enumerate(random.Random(SEED).sample(AT_STEPS, rounds)):
        later = step.study == LATER
        goal: Undisturbed = request.getfixturevalue("measured_later") if later else undisturbed
        part = Round(f"{when}: {step.what}", undisturbed.slowness)
        with TypedSweep(tmp_path / str(number), *OPTIONS, study=step.study) as sweep:
            for part.call in range(1 if step.once else call, 0, -1):
                if later:
                    shutil.copytree(undisturbed.storage, sweep.storage)
                if kill_at_step(part, sweep, f"{when} {part.call} {step.place}", goal):
                    break
                sweep.forget()
            else:
                part.troubles.append("no process came to this step")
        keep("named-steps", part)
        parts.append(part)
    assert [part for part in parts if part.troubles] == [], f"seed {SEED}"


def kill_at_step(part: Round, sweep: TypedSweep, when: str, undisturbed: Undisturbed) -> bool:
    """False where no process made so many calls, and the command ended well."""
    mark = sweep.storage.parent / "mark"
    typed = sweep.type(CHAOS_STEP=when, CHAOS_MARK=str(mark))
    while (
        typed.runs()
        and not mark.exists()
        and time.monotonic() < typed.start_s + undisturbed.limit_s
    ):
        time.sleep(0.05)
    if mark.exists():
        judge(part, sweep, typed, undisturbed)
    else:
        part.troubles += typed.troubles(undisturbed.limit_s)
    return mark.exists() or bool(part.troubles)
