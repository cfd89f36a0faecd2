from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.analysis import shown_indices
from orchestrator.report import ReportResult
from search_spaces.study import Correlation
from tests.support.synthetic_results import STUDY, fail, make_results, report_on
from trainables.errors import UserError

INJECTION = '<script>alert("1")</script>'
PAPER_COMMAND = "python sweep.py 'my <study>.py' --scale paper --corpus ptb"
LOADING = ("src", "href", "srcset", "data", "action", "poster", "xlink:href")


class PageReader(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ReportResult:
    rows, spectra = make_results()
    rows[10] = fail(rows[10], state="failed", cause=f"RuntimeError: {INJECTION}") | {
        "name": f"gss {INJECTION}"
    }
    rows[40] = fail(rows[40], state="diverged", cause="the loss became infinite in epoch 3")
    environment = {"device": "cpu", "host": "<b>box</b>"}
    for i, row in enumerate(rows):
        row["environment"] = environment | {"torch": "2.13.0" if i < 60 else "2.14.1"}
    return report_on(
        rows,
        tmp_path_factory.mktemp("report"),
        spectra=spectra,
        paper_command=PAPER_COMMAND,
    )


@pytest.fixture(scope="module")
def html(report: ReportResult) -> str:
    return report.path.read_text(encoding="utf-8")


def test_page_loads_nothing_and_links_local_files(report: ReportResult, html: str) -> None:
    hrefs = {attributes["href"] for tag, attributes in PageReader(html).tags if tag == "a"}
    links = {href for href in hrefs if href and not href.startswith("#term-")} - {"../index.html"}
    assert len(links) == 5 + 7 and "../index.html" in hrefs
    assert all(link and (report.path.parent / link).stat().st_size > 0 for link in links)
    loaded = [
        value
        for tag, attributes in PageReader(html).tags
        for name, value in attributes.items()
        if name in LOADING and tag != "a" and value and not value.startswith(("data:", "#"))
    ]
    assert loaded == []
    assert not re.search(r"@import|url\((?!#)", html)
    assert "https://" not in html and "http://" not in html


def test_trials_are_named_and_escaped(html: str) -> None:
    page = PageReader(html)
    text = "".join(page.text)
    rows, _ = make_results(columns=50)
    assert all(row["name"] in text for i, row in enumerate(rows) if i != 10)
    assert (
        f"gss {INJECTION}" in text and f"RuntimeError: {INJECTION}" in text and "<b>box</b>" in text
    )
    assert INJECTION not in html
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert len(html) < 1_000_000


def test_ids_are_unique(html: str) -> None:
    page = PageReader(html)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    referred = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', html))
    assert referred and {a or b for a, b in referred} <= set(ids)


def test_page_opens_with_the_findings(html: str) -> None:
    text = " ".join("".join(PageReader(html).text).split())
    order = (
        "scale quick, corpus pydocs: not the paper's models",
        "Is the rank of log P correlated with test perplexity?",
        "over 70 cells",
        "70 of 72 trials are done (1 diverged, 1 failed)",
        "neither confirm nor contradict",
        "The published correlation, r = +0.48",
        "not all computed in the same way: torch 2.13.0 (58), 2.14.1 (12)",
        f"The paper's scale: {PAPER_COMMAND}",
        "The text is made up.",
    )
    positions = [text.index(words) for words in order]
    assert positions == sorted(positions)


def test_csv_file_has_grid_numbers(report: ReportResult) -> None:
    with (report.path.parent / "press_rank_over_c_k.csv").open(newline="") as stream:
        grid = list(csv.reader(stream))
    assert [len(row) for row in grid] == [9] * 10
    assert sum(value == "" for row in grid[1:] for value in row) == 2


def test_verdicts_have_the_numbers_of_files(report: ReportResult) -> None:
    folder = report.path.parent
    summary = json.loads((folder / "summary.json").read_text())
    [verdict] = summary["findings"][0]["verdicts"]
    with (folder / "correlations.csv").open(newline="") as stream:
        line = next(csv.DictReader(stream))
    assert verdict["value"] == float(line["pearson"]) and verdict["p"] == float(line["pearson_p"])
    assert verdict["interval"] == [float(line["pearson_low"]), float(line["pearson_high"])]
    low, high = verdict["interval"]
    assert low < 0 < high and verdict["verdict"] == "no difference shown"
    assert verdict["n"] == int(line["n"]) == 70
    assert summary["answer"] == summary["findings"][0]["sentence"]


def luminance(colour: NDArray[np.float64]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_heat_map_is_readable(
    report: ReportResult,
) -> None:
    grids = report.answers[1]
    axes = grids.section.drawings[1].draw().axes[0]
    assert len(axes.texts) == 72
    assert sorted(text.get_text() for text in axes.texts if text.get_text().isalpha()) == [
        "diverged",
        "failed",
    ]
    mesh = axes.collections[0]
    mesh.update_scalarmappable()
    cells = grids.numbers.cells
    filled = cells["value"][cells["metric"] == "test_perplexity"].notna()
    faces = np.asarray(mesh.get_facecolor(), dtype=float)
    for text, face, has_value in zip(axes.texts, faces, filled, strict=True):
        if has_value:
            ink = {"black": 0.0, "white": 1.0}[str(text.get_color())]
            bright, dark = sorted((luminance(face), ink), reverse=True)
            assert (bright + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("length", [1, 5, 160, 161, 2000, 33_278])
def test_thinned_indices_keep_ends(length: int) -> None:
    indices = shown_indices(length)
    assert indices[0] == 0 and indices[-1] == length - 1 and len(indices) <= 320
    assert (np.diff(indices) >= 1).all()
    assert np.diff(indices).max(initial=0) <= max(1, -(-length // 159))


def rows_in_state(state: str) -> list[dict[str, Any]]:
    return [fail(row, state=state, cause="why") for row in make_results(columns=50)[0]]


@pytest.mark.parametrize("rows", [[], rows_in_state("failed"), rows_in_state("planned")])
def test_empty_report_is_marked(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    result = report_on(rows, tmp_path)
    text = "".join(PageReader(result.path.read_text(encoding="utf-8")).text)
    assert "at least 3 points are needed" in text
    assert "The paper's scale:" not in text
    assert "nan" not in text.lower().split()


def test_pdf_files_are_written_on_request(tmp_path: Path) -> None:
    rows, _ = make_results(columns=50)
    study = replace(STUDY, analyses=(Correlation(),))

    def build(*, pdf: bool = False) -> dict[str, bytes]:
        page = report_on(rows[:4], tmp_path, study=study, pdf=pdf).path.read_text()
        written = {path.name: path.read_bytes() for path in tmp_path.glob("*.p[nd][gf]")}
        assert set(re.findall(r'href="(\w+\.p[nd][gf])"', page)) == set(written)
        return written

    assert build() == {}
    pages = build(pdf=True)
    assert len(pages) == 2
    rows[0]["metrics"]["test_perplexity"] *= 1.5
    renewed = build()
    assert len(renewed) == 2 and all(renewed[name] != pages[name] for name in pages)


def test_file_as_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match=r"--storage: .*taken"):
        report_on([], tmp_path / "taken")
