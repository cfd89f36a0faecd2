"""Four commands at once on one study, one of them killed; and a search whose drivers are killed over and over."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.store.opening import open_store
from tests.support.disturbed import OPTIONS, SEED, Keep, Round, Undisturbed
from tests.support.typed_sweep import TUNED, TypedSweep

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
    chance = random.Random(SEED + number)
    with TypedSweep(tmp_path / "sweep", *OPTIONS, store=store_url) as sweep:
        commands = [sweep.type() for _ in range(4)]
        time.sleep(chance.uniform(0, undisturbed.seconds))
        assert sweep.watch.kill("driver", commands[0].pid, chance) is not None
        hung = [command.text[-300:] for command in commands if command.status(4 * undisturbed.limit_s) is None]
        assert hung == [], f"seed {SEED}"
        assert not any("Traceback" in command.text for command in commands)
        sweep.finish(undisturbed.limit_s)
        troubles = sweep.troubles(undisturbed.table, undisturbed.limit_s)
    keep("four-commands", Round(store_url.partition(":")[0].partition("+")[0], troubles=troubles))
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
            (row.name, row.trial_id, row.state, [epoch.valid_loss for epoch in store.epochs(row.trial_id)])
            for row in store.trials(key)
        ]


@pytest.mark.chaos(0, 100)
def test_a_search_whose_drivers_are_killed_equals_the_undisturbed_one(tmp_path: Path, rounds: int, keep: Keep) -> None:
    chance, kills = random.Random(SEED), 0
    done: list[KilledSearch] = []
    with TypedSweep(tmp_path / "undisturbed", *SEARCH, study=TUNED) as sweep:
        typed = sweep.type()
        assert typed.status(600) == 0, typed.text
        seconds, goal = time.monotonic() - typed.start_s, searched(sweep)
    assert "pruned" in {state for _, _, state, _ in goal}
    while kills < rounds:
        with TypedSweep(tmp_path / str(len(done)), *SEARCH, study=TUNED) as sweep:
            before = kills
            while (typed := sweep.type()).status(chance.uniform(0, seconds / 4)) is None:
                kills += sweep.watch.kill(chance.choice(COMMAND_DIES), typed.pid, chance) is not None
                assert typed.status(HANGS_S) is not None, typed.text[-500:]
            troubles = [] if searched(sweep) == goal else ["another search"]
            done.append(KilledSearch("search", kills - before, troubles))
        keep("searches", done[-1])
    assert [search for search in done if search.troubles] == [], f"seed {SEED}"
