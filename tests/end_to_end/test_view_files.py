from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.end_to_end.conftest import own_address, text
from tests.support.browser import Browser
from tests.support.command import sweep

EVIL = """<!DOCTYPE html><title>began</title><script>
const report = (words) => { document.title = words; };
fetch("/_dash-layout").then((answer) => report("read " + answer.status))
.catch(() => report("refused"));
</script>"""


EVIL_FILES = {
    "a.svg": """<svg xmlns="http://www.w3.org/2000/svg"><title>began</title>
<script href="b.js"/><script>document.title = "ran";</script></svg>""",
    "a.xhtml": """<html xmlns="http://www.w3.org/1999/xhtml"><head><title>began</title>
<script src="b.js"></script><script>document.title = "ran";</script></head><body/></html>""",
}
ASKS = """void fetch("/_dash-layout")
.then(() => { window.outcome = "read"; }).catch(() => { window.outcome = "refused"; })"""


def test_foreign_report_cannot_read_pages(
    browser: Browser, grid: Path, link: str, tmp_path: Path
) -> None:
    folder = grid / "reports" / "evil"
    folder.mkdir()
    (folder / "report.html").write_text(EVIL)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    browser.open(link, width=1280)
    browser.open(f"{own_address(link)}/report/evil/report.html", width=1280)
    browser.wait_until("document.title === 'refused'")
    assert browser.evaluate("origin") == "null"
    browser.open(f"{own_address(link)}/report/evil/link.txt", width=1280)
    assert "secret" not in text(browser, "body")
    browser.open(f"{own_address(link)}/report/gss_grid-smoke-pydocs/report.html", width=1280)
    assert browser.complaints() == []
    assert browser.evaluate("document.querySelector('figure svg') !== null")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{own_address(link)}/report/evil/report.html", timeout=10)
    assert refused.value.code == 403


@pytest.mark.parametrize("name", list(EVIL_FILES))
def test_redirect_gives_foreign_report_nothing(
    browser: Browser, grid: Path, link: str, name: str
) -> None:
    folder = grid / "reports" / f"evil {name}"
    folder.mkdir()
    (folder / "report.html").write_text(f"<script>location.replace({name!r});</script>")
    (folder / name).write_text(EVIL_FILES[name])
    (folder / "b.js").write_text("document.title = 'ran';")
    browser.open(link, width=1280)
    browser.open(f"{own_address(link)}/report/evil%20{name}/report.html", width=1280)
    browser.wait_until(
        f"location.pathname.endsWith({name!r}) && document.readyState === 'complete'"
    )
    assert browser.evaluate("document.title") == "began"
    browser.evaluate(ASKS)
    browser.wait_until("window.outcome")
    assert browser.evaluate("window.outcome") == "refused"


def test_report_pictures_open(browser: Browser, grid: Path, link: str) -> None:
    assert sweep("report", "gss_grid", "--pdf", "--storage", grid).returncode == 0
    folder = next((grid / "reports").glob("gss_grid*"))
    name = next(folder.glob("*.svg")).stem
    signs = {
        "svg": "getComputedStyle(document.querySelector('path')).strokeLinejoin === 'round'",
        "png": "document.images[0].naturalWidth > 100",
        "pdf": "document.contentType === 'application/pdf'",
    }
    browser.open(link, width=1280)
    for form, sign in signs.items():
        browser.open(f"{own_address(link)}/report/{folder.name}/{name}.{form}", width=1280)
        browser.wait_until(sign)
        assert browser.complaints() == []


def test_pages_need_the_token(link: str) -> None:
    for path in (
        "/",
        "/_dash-layout",
        "/download/study/x.csv",
        "/report/x",
        "/assets/view.css",
        "/none",
    ):
        for token in ("", "?token=", "?token=wrong", "?token=%F0"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(own_address(link) + path + token, timeout=10)
            assert refused.value.code == 403
            assert "the link" in refused.value.read().decode()
