from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.faulty_server import WebServer, publish, serving


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """A running web server, reached without the proxy that the environment may name."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as server:
        yield server


@pytest.fixture
def tiny(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a published corpus that the server publishes."""
    publish(web, monkeypatch)
    return "tiny"
