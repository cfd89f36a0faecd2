"""The sweep that nobody disturbs, and the record of disturbed ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from orchestrator.plan import PlanRequest, make_plan, scale_named
from search_spaces.catalog import load_study
from tests.kills.reliability import keep_round
from tests.kills.typed_sweep import EPOCHS, STUDY, Round, Undisturbed, undisturbed_sweep
from tests.support.smoke_trials import train_here

OVER_RAY = 2.0
"""How many times as long the command takes that starts Ray for its trials."""
Keep = Callable[[str, Round], None]


@pytest.fixture(scope="session")
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Undisturbed:
    """In `make test`, the command records trials that this process trains, to save time."""
    folder = tmp_path_factory.mktemp("undisturbed")
    if request.config.getoption("--chaos"):
        return undisturbed_sweep(folder)
    begun_s = time.monotonic()
    settings = {"training.epochs": (EPOCHS,)}
    study = folder / "chaos.py"
    study.write_text(STUDY)
    plan = make_plan(
        load_study(str(study)), scale_named("smoke"), "pydocs", PlanRequest(settings=settings)
    )
    train_here(folder / "results", plan)
    recorded = undisturbed_sweep(folder)
    return replace(recorded, seconds=OVER_RAY * (time.monotonic() - begun_s))


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Keep:
    """Records a round of the named check under `make chaos`."""
    return keep_round if request.config.getoption("--chaos") else lambda name, part: None  # noqa: ARG005
