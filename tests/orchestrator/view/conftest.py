from __future__ import annotations

import pytest
from dash import Dash


@pytest.fixture(scope="session", autouse=True)
def app_without_prefix() -> None:
    """Links on the pages begin with the prefix of the application that was made last."""
    Dash(__name__)
