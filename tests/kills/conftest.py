from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.kills.reliability import keep_round
from tests.kills.typed_sweep import EPOCHS, STUDY, Round, Undisturbed, undisturbed_sweep
from tests.support.smoke_trials import smoke_plan, train_here

OVER_RAY = 2.0
"""A command takes this many times as long with Ray as without."""
Keep = Callable[[str, Round], None]


@pytest.fixture(scope="session")
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Undisturbed:
    """Return an undisturbed sweep to compare with.

    Without --chaos, this process trains its trials, which is faster.
    """
    folder = tmp_path_factory.mktemp("undisturbed")
    if request.config.getoption("--chaos"):
        return undisturbed_sweep(folder)
    begun_s = time.monotonic()
    study = folder / "chaos.py"
    study.write_text(STUDY)
    train_here(folder / "results", smoke_plan(study, settings={"training.epochs": (EPOCHS,)}))
    recorded = undisturbed_sweep(folder)
    return replace(recorded, seconds=OVER_RAY * (time.monotonic() - begun_s))


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Keep:
    return keep_round if request.config.getoption("--chaos") else lambda name, part: None  # noqa: ARG005
