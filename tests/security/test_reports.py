"""A report shows what trials are called and why they failed; it runs nothing of it."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from orchestrator.report.index import write_index
from orchestrator.report.paths import trial_page
from tests.support.browser import EXECUTABLE, Browser
from tests.support.synthetic_results import KEY, fail, make_results, report_on

OWNED = "document.title='owned'"
PAYLOADS = (
    f"<script>{OWNED}</script>",
    f'"><img src=x onerror="{OWNED}">',
    f"</title></style></svg><svg onload={OWNED}>",
    f"<a href=javascript:{OWNED}>x</a>",
    "<iframe src=//elsewhere.example></iframe>",
    "{{7*7}}{% raw %}",
    "]]></text><script>1</script>",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of trials whose every text is hostile."""
    folder = tmp_path_factory.mktemp("storage") / "reports"
    rows, spectra = make_results()
    for row, payload in zip(rows, PAYLOADS * 9, strict=False):
        row["name"] = f"{row['name']} {payload}"
    for place, payload in enumerate(PAYLOADS):
        rows[place] = fail(rows[place], state="failed", cause=payload)
    environments = {
        row["trial_id"]: {"device": PAYLOADS[0], "processor": PAYLOADS[1]} for row in rows
    }
    key = KEY.__class__(
        study="made_up",
        scale=PAYLOADS[1],
        corpus=PAYLOADS[0],
        overrides=json.dumps({"settings": {"a": [PAYLOADS[3]]}}),
    )
    report = report_on(
        rows,
        folder / key.variant,
        key=key,
        spectra=spectra,
        environments=environments,
        paper_command=PAYLOADS[1],
    )
    write_index(folder)
    return report.path


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text of its scripts."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script":
            self.scripts.append(data)
        self.text += data


def policy(elements: Elements) -> dict[str, str]:
    """By directive, what the page's Content-Security-Policy allows."""
    [content] = [
        at["content"]
        for tag, at in elements.elements
        if at.get("http-equiv") == "Content-Security-Policy"
    ]
    assert content is not None
    return {
        part.split()[0]: part.partition(part.split()[0])[2].strip() for part in content.split(";")
    }


@pytest.mark.parametrize("name", ["report.html", "../index.html", "trial"])
def test_texts_of_others_are_text_and_only_the_pages_own_script_may_run(
    page: Path, name: str
) -> None:
    trial = trial_page(make_results()[0][0]["trial_id"])
    elements = Elements(page.parent / (trial if name == "trial" else name))
    allowed = policy(elements)
    scripts = [script for script in elements.scripts if script.strip()]
    if name == "trial":
        assert not scripts and "script-src" not in allowed
        assert PAYLOADS[0] in elements.text, "it is shown, as text"
    else:
        [script] = scripts
        assert (
            allowed["script-src"]
            == f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
        )
    if name == "report.html":
        for payload in PAYLOADS[:6]:
            assert payload in elements.text, "it is shown, as text"
    assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == "'none'"
    tags = [tag for tag, _ in elements.elements]
    assert not {"iframe", "object", "embed", "form", "base", "img"} & set(tags)
    assert tags.count("script") == len(scripts)
    for tag, attributes in elements.elements:
        assert not [attribute for attribute in attributes if attribute.startswith("on")], (
            tag,
            attributes,
        )
        for target in ("href", "src", "xlink:href"):
            parts = urlsplit(attributes.get(target) or "")
            assert parts.scheme in ("", "data") and not parts.netloc, (tag, attributes)
            data = tag in ("link", "image") or "download" in attributes
            assert data or parts.scheme == "", (tag, attributes)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium on this machine")
def test_in_a_browser_nothing_hostile_runs_or_is_asked_for_and_tables_sort(
    page: Path, browser: Browser
) -> None:
    browser.open(page.as_uri(), width=1280)
    assert browser.evaluate("document.title").startswith("Made-up")
    assert [url for url in browser.requests() if not url.startswith("data:")] == [page.as_uri()]
    assert browser.evaluate("document.querySelectorAll('#trials-table th button').length") > 5, (
        "its own script ran"
    )


@pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium on this machine")
def test_even_a_script_that_got_into_the_page_would_not_run(page: Path, browser: Browser) -> None:
    """The policy holds where escaping did not."""
    broken = page.with_name("broken.html")
    text = page.read_text()
    broken.write_text(re.sub("<main>", lambda main: main[0] + "".join(PAYLOADS[:3]), text, count=1))
    browser.open(broken.as_uri(), width=1280)
    assert browser.evaluate("document.title") != "owned"
    assert any("Content Security Policy" in complaint for complaint in browser.complaints())
    assert browser.evaluate("document.querySelectorAll('#trials-table th button').length") > 5
