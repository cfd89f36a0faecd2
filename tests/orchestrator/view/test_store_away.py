"""A PostgreSQL server that ends and starts again under open pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.store import open_store
from orchestrator.view import source as source_module
from orchestrator.view.app import make_app
from orchestrator.view.source import Source
from tests.support.postgres import PASSWORD, PostgresServer
from tests.support.store_rows import KEY, plan

STUDY = f"/study/{KEY.variant}"


@pytest.mark.parametrize("was_open", [True, False])
def test_a_server_that_is_away_is_said_without_the_password_and_comes_back(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was_open: bool
) -> None:
    monkeypatch.setattr(source_module, "FRESH_S", -1.0)
    url = postgres_server.url(postgres_server.create_database())
    with open_store(url) as store:
        store.register(KEY, plan(2))
    made = make_app(Source(url, str(tmp_path)), "token", 1).callback_map
    overview = made["overview.children"]["callback"].__wrapped__
    page = made["..page.children...page-again.disabled.."]["callback"].__wrapped__
    if was_open:
        assert KEY.study in str(overview(0)) and page(STUDY, "", None)[1]
    postgres_server.stop()
    try:
        (opened, _), asks_no_more = page(STUDY, "", None)
        shown: list[Any] = [overview(1), overview(2), opened]
        assert not asks_no_more
        for trouble in shown:
            assert trouble.className == "trouble" and "comes back by itself" in trouble.children
            assert (
                "check that the server runs" not in trouble.children
                and PASSWORD not in trouble.children
            )
    finally:
        postgres_server.start()
    content, asks_no_more = page(STUDY, "", 1)
    assert KEY.study in str(overview(3)) and asks_no_more and content["study-version"].data
