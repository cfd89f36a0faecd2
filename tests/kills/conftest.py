"""The sweep that nobody disturbs, which others are compared with."""

from __future__ import annotations

import pytest

from tests.support.disturbed import EPOCHS, FEW_EPOCHS, Undisturbed, undisturbed_sweep


@pytest.fixture(scope="session")
def epochs(request: pytest.FixtureRequest) -> int:
    """Of a trial: more in `make chaos`, so that each kind of process lives for a good part of the sweep."""
    return EPOCHS if request.config.getoption("--chaos") else FEW_EPOCHS


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, epochs: int) -> Undisturbed:
    return undisturbed_sweep(tmp_path_factory.mktemp("undisturbed"), epochs)
