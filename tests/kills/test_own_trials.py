from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.kills.conftest import Keep
from tests.kills.own_sweep import KILLS, CommandSweep, OwnSweep, kill_often
from tests.kills.typed_sweep import SEED, run_undisturbed

pytestmark = pytest.mark.timeout(0)


@pytest.mark.chaos(0, 8)
@pytest.mark.parametrize("make", [OwnSweep, CommandSweep])
def test_kills_keep_the_table(
    make: type[OwnSweep], tmp_path: Path, rounds: int, keep: Keep
) -> None:
    chance, parts = random.Random(SEED), []
    with make(tmp_path / "undisturbed") as sweep:
        undisturbed = run_undisturbed(sweep)
    for number in range(rounds):
        with make(tmp_path / str(number)) as sweep:
            parts.append(kill_often(sweep, undisturbed, chance, KILLS))
        keep(f"Kills of an own study, {make.__name__}", parts[-1])
    assert [part for part in parts if part.troubles] == [], f"seed {SEED}"
