from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from orchestrator.analysis.frames import flatten
from orchestrator.report import ReportResult
from orchestrator.report.tables import trials_table
from orchestrator.report.terminal import ROWS_SHOWN, Fitting, split, summary_group
from tests.support.synthetic_results import fail, make_results, report_on

WIDTHS = (80, 100, 200)
NAME = "gss c=-2 k=1.75"
CAUSE = "RuntimeError: [bold]no[/bold] room for 33,278 by 82,430 numbers on a device with 2 MiB"


def render(content: RenderableType, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(content)
    text = console.export_text()
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert max(map(cell_len, text.splitlines())) <= width
    return text


def lines_of_cells(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]
        for line in text.splitlines()
        if line[:1] in ("│", "┃")
    ]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ReportResult:
    rows, _ = make_results(columns=2000)
    rows[2] = fail(rows[2], state="failed", cause=CAUSE)
    rows[40] = fail(rows[40], state="diverged", cause="the loss is not finite")
    rows[41]["metrics"]["test_perplexity"] = 1234.5
    return report_on(rows, tmp_path_factory.mktemp("report"))


def test_it_shows_the_answer_and_ten_rows(report: ReportResult) -> None:
    text = render(summary_group(report), 200)
    assert text.startswith(report.answers[0].section.sentences[0][:60])
    assert text.count("┏") == 2, "two tables: the first one, and trials without a result"
    assert len(lines_of_cells(text)) <= 2 * (1 + ROWS_SHOWN) + 1


@pytest.mark.parametrize("width", WIDTHS)
def test_failed_trials_have_causes(report: ReportResult, width: int) -> None:
    text = render(summary_group(report), width)
    lines = [line for line in lines_of_cells(text) if len(line) == 3]
    start = next(i for i, line in enumerate(lines) if line[:2] == [NAME, "failed"])
    end = next(i for i, line in enumerate(lines) if line[1] == "diverged")
    assert " ".join(line[2] for line in lines[start:end]) == CAUSE
    assert lines[end][2] == "the loss is not finite"


@pytest.mark.parametrize("width", [60, 80, 200, 1000])
def test_wide_table_repeats_first_column(width: int) -> None:
    table = trials_table(flatten(make_results(columns=200)[0]))
    parts = split(table, width)
    assert [name for part in parts for name in part.head[1:]] == list(table.head[1:])
    text = render(Fitting(table=table), width)
    cells = {tuple(line) for line in lines_of_cells(text)}
    for part in parts:
        assert part.head[0] == "trial"
        assert {tuple(cell.text for cell in row) for row in part.body} <= cells
    assert (len(parts) == 1) == (width >= 200)
