from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from orchestrator.report import write_index
from tests.support.browser import Browser
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
    folder = tmp_path_factory.mktemp("storage") / "reports"
    rows, spectra = make_results()
    for row, payload in zip(rows, PAYLOADS * 9, strict=False):
        row["name"] = f"{row['name']} {payload}"
    for index, payload in enumerate(PAYLOADS):
        rows[index] = fail(rows[index], state="failed", cause=payload)
    for row in rows:
        row["environment"] = {"device": PAYLOADS[0], "processor": PAYLOADS[1]}
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
        paper_command=PAYLOADS[1],
    )
    write_index(folder)
    return report.path


class Elements(HTMLParser):
    def __init__(self, page: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts, self.text = list[str](), ""
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script" and data.strip():
            self.scripts.append(data)
        self.text += data

    def policy(self) -> dict[str, str]:
        policies = [at["content"] for _, at in self.elements if "http-equiv" in at]
        pairs = (part.strip().partition(" ") for part in str(policies[0]).split(";"))
        return {name: sources for name, _, sources in pairs}


@pytest.mark.parametrize("name", ["report.html", "../index.html"])
def test_hostile_texts_are_escaped(page: Path, name: str) -> None:
    """The content security policy must allow only the page's own script."""
    elements = Elements(page.parent / name)
    allowed = elements.policy()
    assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == "'none'"
    (script,) = elements.scripts
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert allowed["script-src"] == f"'sha256-{digest}'"
    payloads = PAYLOADS[:6] if name == "report.html" else ()
    assert [payload for payload in payloads if payload not in elements.text] == []
    tags = [tag for tag, _ in elements.elements]
    assert not {"iframe", "object", "embed", "form", "base", "img"} & set(tags)
    assert tags.count("script") == 1
    for tag, attributes in elements.elements:
        assert not any(attribute.startswith("on") for attribute in attributes), (tag, attributes)
        for target in ("href", "src", "xlink:href"):
            parts = urlsplit(attributes.get(target) or "")
            data = tag in ("link", "image") or "download" in attributes
            assert parts.scheme in ("", "data" if data else "") and not parts.netloc, attributes


@pytest.mark.parametrize("escaped", [True, False])
def test_hostile_scripts_never_run(page: Path, browser: Browser, escaped: bool) -> None:
    """The content security policy blocks the scripts even if escaping fails."""
    if not escaped:
        broken = page.with_name("broken.html")
        broken.write_text(page.read_text().replace("<main>", "<main>" + "".join(PAYLOADS[:3]), 1))
        page = broken
    browser.open(page.as_uri(), width=1280)
    assert browser.evaluate("document.title") != "owned"
    assert browser.evaluate("document.querySelectorAll('#trials-table th button').length") > 5
    if escaped:
        sent = [url for url in browser.requests() if not url.startswith("data:")]
        assert sent == [page.as_uri()]
    else:
        assert any("Content Security Policy" in text for text in browser.complaints())
