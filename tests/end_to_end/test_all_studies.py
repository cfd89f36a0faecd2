"""Every study of the papers at scale smoke, one after the other, to the page in a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from search_spaces.catalog import NAMES, load_study
from tests.support.browser import EXECUTABLE, Browser
from tests.support.command import ROOT, sweep, sweep_process

DATA = ROOT.parent / "shared" / "data"
pytestmark = [
    pytest.mark.skipif(not (DATA / "word-similarity").is_dir(), reason="no ../shared/data with the benchmarks"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `sweep.py all` leaves behind."""
    storage = tmp_path_factory.mktemp("all")
    answer = sweep_process("all", "--scale", "smoke", "--data-dir", DATA, "--storage", storage, timeout_s=590)
    (storage / "out.txt").write_text(answer.stdout)
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr
    return storage


def test_each_ends_in_a_report_and_the_index_has_them_all(storage: Path) -> None:
    out = (storage / "out.txt").read_text()
    assert out.count("Ray dashboard:") == 1, "they share one Ray"
    for name in NAMES:
        folder = storage / "reports" / f"{name}-smoke-{'pydocs' if load_study(name).reads_text else 'none'}"
        assert f"Report: {folder / 'report.html'}" in out
        card = json.loads((folder / "summary.json").read_text())
        assert card["question"].endswith("?") and card["findings"]
        assert f'href="{folder.name}/report.html"' in (storage / "reports" / "index.html").read_text()
        text = re.sub(r"<svg.*?</svg>|<[^>]*>", " ", (folder / "report.html").read_text(), flags=re.S)
        assert not {"nan", "NaN", "None", "inf"} & set(text.split())


def test_studies_that_share_trials_train_them_once(storage: Path) -> None:
    trials = [json.loads(path.read_text()) for path in storage.glob("trials/*/*/result.json")]
    trials += [json.loads(path.read_text()) for path in storage.glob("trials/*/result.json")]
    planned = json.loads(sweep("all", "--scale", "smoke", "--dry-run", "--format", "json").stdout)
    assert {trial["trial_id"] for trial in planned} <= {trial["trial_id"] for trial in trials}
    assert len(planned) < sum(len(trial["study"].split(", ")) for trial in planned)


@pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium on this machine")
def test_every_page_opens_alone_without_a_complaint_at_both_widths(storage: Path, tmp_path: Path) -> None:
    pages = [*storage.glob("reports/*/report.html"), storage / "reports" / "index.html"]
    assert len(pages) == len(NAMES) + 1
    with Browser(tmp_path) as browser:
        for page in pages:
            for width in (1280, 400):
                browser.open(page.as_uri(), width=width)
                assert browser.complaints() == [], page
                assert [url for url in browser.requests() if not url.startswith("data:")] == [page.as_uri()]
                assert browser.evaluate("document.documentElement.scrollWidth") <= width, page
