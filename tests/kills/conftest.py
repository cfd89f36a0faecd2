"""The sweep that nobody disturbs, which others are compared with."""

from __future__ import annotations

import pytest

from tests.support.disturbed import Keep, Undisturbed, undisturbed_sweep
from tests.support.reliability import keep_round


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return undisturbed_sweep(tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Keep:
    return keep_round if request.config.getoption("--chaos") else lambda name, part: None  # noqa: ARG005
