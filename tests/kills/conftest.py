"""The sweep that nobody disturbs, and the record of disturbed ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kills.reliability import keep_round
from tests.kills.typed_sweep import Round, Undisturbed, undisturbed_sweep

Keep = Callable[[str, Round], None]


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return undisturbed_sweep(tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Keep:
    """Records a round of the named check under `make chaos`."""
    return keep_round if request.config.getoption("--chaos") else lambda name, part: None  # noqa: ARG005
