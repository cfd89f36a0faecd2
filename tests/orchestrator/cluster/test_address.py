from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.cluster import address
from orchestrator.cluster.address import JOIN_S, check_address
from orchestrator.cluster.environment import make_token_private
from trainables.errors import UserError


@pytest.fixture
def silent_server() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_closed_port_is_reported_immediately() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    start_s = time.monotonic()
    with pytest.raises(
        UserError, match=rf"no Ray cluster answers at {closed} \(Connection refused\)"
    ):
        check_address(closed)
    assert time.monotonic() - start_s < 2


def test_server_without_ray_is_reported(
    silent_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert JOIN_S < 15
    monkeypatch.setattr(address, "JOIN_S", 3.0)
    with pytest.raises(UserError, match=r"cannot be joined \(no answer within 3 s\)"):
        check_address(silent_server)


@pytest.mark.parametrize(
    "typed",
    ["somewhere", "host:port", "host:0", "host:99999", "http://host:80/x", "ray://127.0.0.1:10001"],
)
def test_malformed_address_names_expected_form(typed: str) -> None:
    with pytest.raises(UserError, match="HOST:PORT"):
        check_address(typed)


def test_only_user_can_read_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ray" / "token"
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(path))
    make_token_private()
    token = path.read_text()
    assert len(token) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    make_token_private()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == token
