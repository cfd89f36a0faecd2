from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from orchestrator.report import ReportResult
from orchestrator.report.sections.custom import custom_section
from orchestrator.report.sections.section import NOTHING
from search_spaces.study import Correlation
from tests.support.command import ROOT
from tests.support.synthetic_results import STUDY, csv_records, fail, make_results, report_on
from trainables.errors import UserError

BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "write-a-study.md").read_text(), re.DOTALL
)
DOCS_STUDY, DOCS_FUNCTION = (
    next(block for block in BLOCKS if start in block)
    for start in ("my_study.py", "def gap_by_bend")
)


def report_with(
    function: Callable[[pd.DataFrame], Any], out: Path, *, pdf: bool = False
) -> ReportResult:
    rows, _ = make_results(columns=50)
    rows[7] = fail(rows[7], state="failed", cause="no memory")
    study = replace(STUDY, analyses=(function, Correlation()))
    return report_on(rows, out, study=study, pdf=pdf)


def test_docs_function_becomes_a_section(tmp_path: Path) -> None:
    file = tmp_path / "my_study.py"
    analyses = 'analyses=(Correlation(), GridMap(row="output_layer.c", column="output_layer.k"))'
    assert analyses in DOCS_STUDY
    text = DOCS_STUDY.replace(analyses, "analyses=(Correlation(), gap_by_bend)")
    file.write_text(text.replace("STUDY = Study(", f"{DOCS_FUNCTION}\n\nSTUDY = Study("))
    study = runpy.run_path(str(file))["STUDY"]
    report = report_with(study.analyses[1], tmp_path / "report")
    page = report.path.read_text()
    assert page.count("<h2>Gap by bend</h2>") == page.count('<div id="analysis-gap_by_bend">') == 1
    assert "Test less train perplexity, by the place of the bend." in page
    assert re.search(r">The gap is least at c = -?\d(\.5)?\.</p>", page)
    lines = csv_records(tmp_path / "report" / "analysis_gap_by_bend_table_1.csv")
    values = [row["metrics"] for row in make_results(columns=50)[0][:7]]
    mean = sum(metrics["test_perplexity"] - metrics["train_perplexity"] for metrics in values) / 7
    assert [float(line["output_layer.c"]) for line in lines] == [-2 + 0.5 * i for i in range(9)]
    assert float(lines[0]["mean"]) == pytest.approx(mean), (
        "the failed trial, the eighth, is left out"
    )
    assert (report.path.parent / "analysis_gap_by_bend_1.svg").exists()


def test_returned_text_is_escaped(tmp_path: Path) -> None:
    attack = "<script>alert(1)</script>"

    def attacking(_: pd.DataFrame) -> list[Any]:
        figure = Figure()
        figure.suptitle(attack)
        return [
            attack,
            figure,
            pd.DataFrame({attack: [attack, None]}, index=pd.Index([1.5, 2.5], name=attack + "2")),
        ]

    page = report_with(attacking, tmp_path).path.read_text()
    assert attack not in page and page.count("<script>") == 1
    assert page.count("&lt;script&gt;") > 5


def failing(results: pd.DataFrame) -> None:
    raise ValueError(f"no column for {len(results)} trials\nsecond line")


def badly_drawn(_: pd.DataFrame) -> Figure:
    figure = Figure()
    figure.text(0.5, 0.5, "$\\nonsense{$", parse_math=True)
    return figure


class _NoRaster(Figure):
    def savefig(self, fname: Any, **options: Any) -> None:
        if options["format"] == "png":
            raise ValueError("too many pixels")
        super().savefig(fname, **options)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (failing, r" in line \d+: ValueError: no column for 71 trials\.$"),
        (
            lambda _: {"a": 1},
            ": TypeError: it returned a dict; return a pandas DataFrame, a matplotlib Figure",
        ),
        (badly_drawn, ": ValueError: "),
        (lambda _: _NoRaster(), r" in line \d+: ValueError: too many pixels"),
        (lambda _: sys.exit("no such column"), r" in line \d+: SystemExit: no such column"),
    ],
)
def test_failing_function_becomes_one_sentence(
    function: Callable[[pd.DataFrame], Any], error: str, tmp_path: Path
) -> None:
    report = report_with(function, tmp_path, pdf=True)
    first, second = report.answers[0].section, report.answers[1].section
    [sentence] = first.sentences
    assert re.match(
        rf"The analysis {re.escape(function.__name__)} of the study failed{error}", sentence
    )
    assert "second line" not in sentence
    page = report.path.read_text()
    assert "of the study failed" in page and second.heading in page and "Traceback" not in page


def test_functions_have_separate_axes(tmp_path: Path) -> None:
    plotted: list[Figure] = []

    def plot(results: pd.DataFrame) -> Figure:
        figure = results["test_perplexity"].plot().figure
        assert isinstance(figure, Figure)
        plotted.append(figure)
        return figure

    report_with(plot, tmp_path / "first")
    report_with(plot, tmp_path / "second")
    assert [len(axes.lines) for figure in plotted for axes in figure.axes] == [1, 1]


@pytest.mark.parametrize(
    ("index", "head"),
    [
        (pd.Index([1, 2], name="c"), ["c", "c", "index"]),
        (pd.Index(["a", "b"]), ["level_0", "c", "index"]),
    ],
)
def test_index_becomes_columns(index: pd.Index[Any], head: list[str]) -> None:
    table = pd.DataFrame({"c": [5, 6], "index": [7, 8]}).set_index(index)
    section = custom_section(lambda _: table, pd.DataFrame({"state": ["done"]}))
    assert [list(part.head) for part in section.texts] == [head], section.sentences


def test_no_result_no_call() -> None:
    assert custom_section(failing, pd.DataFrame({"state": ["planned", "failed"]})) is NOTHING


def test_class_instead_of_a_request_is_refused() -> None:
    with pytest.raises(UserError, match="analyses must be a tuple"):
        replace(STUDY, analyses=(Correlation,))  # type: ignore[arg-type]


def test_undecodable_text_is_reported(tmp_path: Path) -> None:
    report = report_with(lambda _: "broken \udcff name", tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert "broken \udcff name" in {finding["sentence"] for finding in summary["findings"]}
    assert "broken" in report.path.read_text()
