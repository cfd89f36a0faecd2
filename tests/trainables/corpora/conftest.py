from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.faulty_server import WebServer, serving


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as server:
        yield server
