"""Addresses of stores as they are printed: no secret in them, whichever way it was typed."""

from __future__ import annotations

import pytest

from orchestrator.store.address import parse, printable


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://me:hunter2@host/results",
        "postgresql+psycopg://host/results?user=me&password=hunter2",
        "postgresql://host/results?sslcert=c.pem&sslpassword=hunter2&user=me",
        "postgresql://host/results?password=hunter2&password=hunter2again&user=me",
        "postgresql://me:hunter2@host/results?PassWord=hunter2",
    ],
)
def test_no_form_of_a_password_is_shown_and_none_is_lost(address: str) -> None:
    url = parse(address)
    text = printable(url)
    assert "hunter2" not in text
    assert all(part in text for part in ("me", "host/results"))
    assert "hunter2" in url.render_as_string(hide_password=False)


def test_what_is_no_secret_is_shown_as_it_was_typed() -> None:
    address = "postgresql+psycopg://me@host:5433/results?passfile=passwords&sslmode=require"
    assert printable(parse(address)) == address
