"""The sweep that nobody disturbs, which others are compared with."""

from __future__ import annotations

import pytest

from tests.support.disturbed import EPOCHS, FEW_EPOCHS, Keep, Undisturbed, undisturbed_sweep
from tests.support.reliability import keep_round


@pytest.fixture(scope="session")
def epochs(request: pytest.FixtureRequest) -> int:
    """Of a trial: more in `make chaos`, so that each kind of process lives for a good part of the sweep."""
    return EPOCHS if request.config.getoption("--chaos") else FEW_EPOCHS


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, epochs: int) -> Undisturbed:
    return undisturbed_sweep(tmp_path_factory.mktemp("undisturbed"), epochs)


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Keep:
    return keep_round if request.config.getoption("--chaos") else lambda name, part: None  # noqa: ARG005
