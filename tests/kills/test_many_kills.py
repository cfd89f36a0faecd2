"""Four commands at once on one study, one of them killed; and a search whose drivers are killed
over and over."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.store.opening import open_store
from tests.support.disturbed import OPTIONS, SEED, Keep, Round, Undisturbed
from tests.support.typed_sweep import TRIALS, TUNED, TypedSweep

pytestmark = pytest.mark.timeout(0)
SEARCH = ("--max-concurrent", "1", "--budget", "14", "--set", "training.epochs=8")
"""More than the search draws at random before it learns from what it had."""
COMMAND_DIES = ("driver", "process group", "everything")
HANGS_S = 300.0
Search = list[tuple[str, str, str, list[float]]]


@pytest.mark.chaos(0, 1)
@pytest.mark.parametrize("number", range(5))
@pytest.mark.usefixtures("rounds")
def test_of_four_commands_at_once_one_is_killed_and_each_trial_is_trained_once(
    undisturbed: Undisturbed, store_url: str, tmp_path: Path, number: int, keep: Keep
) -> None:
    chance, troubles = random.Random(SEED + number), []
    with TypedSweep(tmp_path / "sweep", *OPTIONS, store=store_url) as sweep:
        commands = [sweep.type() for _ in range(4)]
        time.sleep(chance.uniform(0, 2 * undisturbed.seconds))
        drivers = {str(driver.pid) for driver in sweep.watch.alive("driver", commands[0].pid)}
        held = sweep.held(drivers)
        killed = sweep.watch.kill("driver", commands[0].pid, chance) is not None
        held |= sweep.held(drivers)
        for command in commands[killed:]:
            troubles += command.troubles(4 * undisturbed.limit_s)
        commands[0].status(undisturbed.limit_s)
        troubles += commands[0].tracebacks()
        claims = sweep.claims()
        troubles += [
            f"claimed twice: {trial}"
            for trial, times in claims.items()
            if times > 1 + (trial in held)
        ]
        troubles += sweep.troubles(undisturbed.table, undisturbed.limit_s)
        again = sum(claims.values()) - TRIALS
    kind = f"{store_url.partition(':')[0].partition('+')[0]}, {'killed' if killed else 'was over before'}"
    keep("four-commands", Round(kind, undisturbed.slowness, claimed_again=again, troubles=troubles))
    assert troubles == [], f"seed {SEED}"


@dataclass
class KilledSearch:
    kind: str
    kills: int
    troubles: list[str]


def searched(sweep: TypedSweep) -> Search:
    """The trials of the search with their validation losses."""
    with open_store(f"sqlite:///{sweep.storage}/results.db") as store:
        key = store.studies()[-1].key
        return [
            (
                row.name,
                row.trial_id,
                row.state,
                [epoch.valid_loss for epoch in store.epochs(row.trial_id)],
            )
            for row in store.trials(key)
        ]


@pytest.mark.chaos(0, 100)
def test_a_search_whose_drivers_are_killed_equals_the_undisturbed_one(
    tmp_path: Path, rounds: int, keep: Keep
) -> None:
    chance, kills = random.Random(SEED), 0
    done: list[KilledSearch] = []
    with TypedSweep(tmp_path / "undisturbed", *SEARCH, study=TUNED) as sweep:
        typed = sweep.type()
        assert typed.status(600) == 0, typed.text
        seconds, goal = time.monotonic() - typed.start_s, searched(sweep)
    assert "pruned" in {state for _, _, state, _ in goal}
    while kills < rounds:
        with TypedSweep(tmp_path / str(len(done)), *SEARCH, study=TUNED) as sweep:
            before, troubles = kills, list[str]()
            while (
                not troubles
                and (typed := sweep.type()).status(chance.uniform(0, seconds / 4)) is None
            ):
                kills += (
                    sweep.watch.kill(chance.choice(COMMAND_DIES), typed.pid, chance) is not None
                )
                troubles += (
                    [] if typed.status(HANGS_S) is not None else [f"hung: {typed.text[-500:]}"]
                )
                troubles += typed.tracebacks()
            troubles += typed.troubles(HANGS_S)
            troubles += [] if searched(sweep) == goal else ["another search"]
            troubles += [f"trained twice: {trial}" for trial in sweep.trained_twice()]
            troubles += [f"left behind: {name}" for name in sweep.left_behind()]
            done.append(KilledSearch("search", kills - before, troubles))
        keep("searches", done[-1])
    assert [search for search in done if search.troubles] == [], f"seed {SEED}"
