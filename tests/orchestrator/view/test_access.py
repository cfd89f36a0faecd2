from __future__ import annotations

from pathlib import Path
from urllib.parse import urljoin

import pytest
from flask import Flask

from orchestrator.view import access, downloads
from orchestrator.view.source import Source

FETCHED_BY_DEFAULT = (
    "script-src",
    "script-src-elem",
    "script-src-attr",
    "connect-src",
    "worker-src",
    "object-src",
)
"""Directives of a content security policy that fall back to `default-src`."""


@pytest.fixture
def server(tmp_path: Path) -> Flask:
    server = Flask(__name__)
    downloads.register(server, Source(str(tmp_path / "results.db"), str(tmp_path)))
    server.add_url_rule("/", view_func=lambda: "its own page")
    access.guard(server, "token", [])
    (tmp_path / "reports").mkdir()
    return server


def policy(server: Flask, path: str) -> dict[str, str]:
    browser = server.test_client()
    browser.get("/?token=token")
    answer = browser.get(path)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    parts = [
        part.split(maxsplit=1) for part in answer.headers["Content-Security-Policy"].split(";")
    ]
    return {name: "".join(allowed) for name, *allowed in parts}


@pytest.mark.parametrize(
    "kind", ["svg", "svgz", "xhtml", "xht", "xml", "js", "png", "pdf", "csv", "json", "unknown"]
)
def test_stored_file_runs_no_script(server: Flask, tmp_path: Path, kind: str) -> None:
    (tmp_path / "reports" / f"a.{kind}").write_text("text")
    allowed = policy(server, f"/report/a.{kind}")
    assert allowed["default-src"] == "'none'" and not allowed.keys() & set(FETCHED_BY_DEFAULT)
    assert allowed["base-uri"] == allowed["form-action"] == allowed["frame-ancestors"] == "'none'"
    assert "sandbox" not in allowed, "some browsers show no PDF in a sandbox"


@pytest.mark.parametrize("name", ["a.html", "a.htm", "a.html.gz", "none.html"])
def test_stored_page_has_no_origin(server: Flask, tmp_path: Path, name: str) -> None:
    for file in ("a.html", "a.htm", "a.html.gz"):
        (tmp_path / "reports" / file).write_text("text")
    allowed = policy(server, f"/report/{name}")
    assert "allow-same-origin" not in allowed["sandbox"] and allowed["default-src"] == "'none'"


def test_pages_run_own_scripts(server: Flask) -> None:
    assert "'self'" in policy(server, "/")["script-src"]


@pytest.mark.parametrize(
    "address", ["/user/me/8642", "/user/me/8642/", "/user/me/8642/study/a%2Fb"]
)
def test_link_redirects_to_its_address(address: str) -> None:
    """Proxies differ in what they do to an absolute path, so only a relative one is right."""
    server = Flask(__name__)
    access.guard(server, "token", [], "/user/me/8642")
    link = f"https://hub.example{address}?token=token&study=x"
    answer = server.test_client().get(link, headers={"Host": "hub.example"})
    target = answer.headers["Location"]
    assert not target.startswith(("/", "http"))
    assert urljoin(link, target) == f"https://hub.example{address}?study=x"
    assert "; Path=/user/me/8642;" in answer.headers["Set-Cookie"]
    assert "HttpOnly" in answer.headers["Set-Cookie"]
