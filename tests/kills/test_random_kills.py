"""SIGKILL at a random moment, or at a named step between two durable writes, of a real sweep: the same command, typed
again where it has to be, ends with the table of a sweep that nobody disturbed."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.reliability import counts, spread, write_summary
from tests.support.typed_sweep import LIMIT_S, QUIET_S, STUDY, Typed, TypedSweep
from tests.support.victims import VICTIMS

SEED = int(os.environ.get("CHAOS_SEED", random.randrange(10**6)))


@dataclass(frozen=True)
class Undisturbed:
    """A sweep that nobody disturbed: how long its epochs are, what it came to, how long it took."""

    options: tuple[str, ...]
    table: list[dict[str, str]]
    seconds: float

    @property
    def limit_s(self) -> float:
        """For one command after a kill: `LIMIT_S` on a quiet machine."""
        return LIMIT_S * max(1.0, self.seconds / QUIET_S)


@dataclass
class Round:
    """One kill and what became of it."""

    kind: str
    moment_s: float = 0.0
    ended_s: float | None = None
    """From the kill to the end of the command under way; None: it hung."""
    commands: int = 1
    troubles: list[str] = field(default_factory=list)


def undisturbed_sweep(folder: Path, epochs: int, study: str = STUDY) -> Undisturbed:
    options = ("--set", f"training.epochs={epochs}")
    with TypedSweep(folder, *options, study=study) as sweep:
        typed = sweep.type()
        assert typed.status(600) == 0, typed.text
        seconds = time.monotonic() - typed.start_s
        return Undisturbed(options, sweep.table(), seconds)


@pytest.fixture(scope="module")
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Longer in `make chaos`, so that each kind of victim lives for a good part of it."""
    return undisturbed_sweep(tmp_path_factory.mktemp("whole"), 30 if request.config.getoption("--chaos") else 4)


@pytest.mark.chaos(1, 200)
@pytest.mark.timeout(600)
def test_whatever_is_killed_the_same_command_ends_with_the_same_table(
    undisturbed: Undisturbed, tmp_path: Path, rounds: int
) -> None:
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    done = []
    for number in range(rounds):
        victim = VICTIMS[(number + SEED) % len(VICTIMS)]
        with TypedSweep(tmp_path / str(number), *undisturbed.options) as sweep:
            done.append(killed_at_random(sweep, victim, undisturbed, chance))
    if rounds == 200:
        rows = [_row(victim, [part for part in done if part.kind == victim], len(done)) for victim in VICTIMS]
        write_summary("random-kills", "SIGKILL at a random moment", rows, f"Seed {SEED}.")
    assert [part for part in done if part.troubles] == []


def killed_at_random(sweep: TypedSweep, victim: str, undisturbed: Undisturbed, chance: random.Random) -> Round:
    """One round, begun anew where the sweep ended before the moment, or before there was such a process."""
    part = Round(victim)
    for typed in _typed_anew(sweep):
        part.moment_s = chance.uniform(0, undisturbed.seconds)
        time.sleep(part.moment_s)
        while (killed := sweep.watch.kill(victim, typed.pid, chance)) is None and typed.runs():
            time.sleep(0.1)
        if killed is not None:
            return _ended(part, sweep, typed, time.monotonic(), undisturbed)
    raise AssertionError(f"no {victim} lived for long enough to be killed")


def _typed_anew(sweep: TypedSweep) -> Iterator[Typed]:
    for _ in range(5):
        yield sweep.type()
        sweep.forget()


def _ended(part: Round, sweep: TypedSweep, typed: Typed, killed_s: float, undisturbed: Undisturbed) -> Round:
    status = typed.status(undisturbed.limit_s)
    if status is None:
        part.troubles.append(f"hung: {typed.text[-300:]}")
        sweep.kill_all()
    else:
        part.ended_s = time.monotonic() - killed_s
        if "Traceback" in typed.text:
            part.troubles.append(f"traceback: {typed.text[-2000:]}")
    try:
        if status != 0:
            part.commands += sweep.finish(undisturbed.limit_s)
    except AssertionError as error:
        part.troubles.append(str(error))
    part.troubles += sweep.troubles(undisturbed.table, undisturbed.limit_s)
    return part


def _row(kind: str, parts: list[Round], of: int) -> dict[str, object]:
    def having(word: str) -> int:
        return sum(any(trouble.startswith(word) for trouble in part.troubles) for part in parts)

    return {
        "killed": kind,
        "times": f"{len(parts)} of {of}",
        "hung": having("hung"),
        "another table": having("another table"),
        "lost": having("lost"),
        "trained twice": having("trained twice"),
        "left behind": having("left behind"),
        "commands typed": counts(part.commands for part in parts),
        "s to the command's end (median / 90% / most)": spread(p.ended_s for p in parts if p.ended_s is not None),
    }
