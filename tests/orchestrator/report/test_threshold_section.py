"""What the widths at which a value is reached, and their laws, become on a page, in a figure and in
files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from orchestrator.analysis import flatten, threshold_numbers
from orchestrator.report.figures import STYLE
from orchestrator.report.hover import NamedMarks
from orchestrator.report.sections.section import Section
from orchestrator.report.sections.thresholds import threshold_section
from tests.support.laws_and_settings import LEARNED_AT, spam_rows
from tests.support.synthetic_results import STUDY, csv_records, fail, report_on

REQUEST = replace(LEARNED_AT, claim="Others print no width (A 2026).")
FACTORS = {"softmax": 1.0, "mos": 1.0, "softcap": 1.5}
ROWS = spam_rows(FACTORS)
FEW = spam_rows(FACTORS, symbols=(100, 1000, 2000, 100_000), widths=(8, 16, 32, 64), seeds=1)
"""At V = 100 softmax needs less than any of the widths, at V = 100,000 every layer more."""


def section_of(rows: list[dict[str, Any]]) -> Section:
    numbers = threshold_numbers(flatten(rows).frame(), REQUEST)
    assert numbers is not None
    return threshold_section(numbers)


def records(section: Section, name: str) -> list[dict[str, Any]]:
    head, *lines = section.files[name]
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_findings_name_widths_ratios_and_exponents() -> None:
    widths, apart, same, law = section_of(ROWS).findings
    assert (
        widths.startswith(
            "The least embedding width with a gap to the entropy (nats) of at most 0.1: softmax 12"
        )
        and widths.count(" at V = 500, 1000, 2000 and 4000") == 3
    )
    assert "exponents b" in law and law.count("[0.") == 3 and "misfit" not in law
    assert "Compared with softmax" in apart and "softcap 1.5" in apart
    assert apart.count("softcap") == 4 and "mos" not in apart and apart.count("at V = ") == 4
    assert (
        same.count("mos") == 4
        and "softcap" not in same
        and "does not show that they are equal" in same
    )
    assert section_of(ROWS).remarks == ("Others print no width (A 2026).",)


def test_every_number_is_in_a_file() -> None:
    section = section_of(ROWS)
    points, laws = records(section, "thresholds.csv"), records(section, "threshold_laws.csv")
    assert len(points) == 12 and len(laws) == 3
    for point in points:
        x, low, high = (point[f"model.embedding_width{end}"] for end in ("", "_low", "_high"))
        assert low < x < high and point["trained"] == "4 8 16 32 64"
        assert (point["ratio"] is None) == (point["output_layer.name"] == "softmax")
        assert point["holm_p"] is None or point["holm_p"] >= point["p"]
    assert all(law["b_low"] < law["b"] < law["b_high"] and law["farthest_off"] >= 1 for law in laws)


def test_where_nothing_is_reached_the_table_and_a_sentence_say_on_which_side_and_what_a_law_lacks() -> (
    None
):
    section = section_of(FEW)
    assert (
        "There is no power law over V for softmax and mos yet: of V, it needs 3 or more at which "
        "the value is reached, "
        "and there are 2."
    ) in section.findings
    nowhere = section.findings[1]
    assert (
        "softmax at V = 100 (below 8)" in nowhere
        and "softcap at V = 100000 (not up to 64)" in nowhere
    )
    assert any("for softcap others are left out" in caution for caution in section.cautions)
    widths = [line[4].text for line in section.tables[0].body]
    assert widths[0] == "below 8" and widths[-1] == "not up to 64" and "[" not in "".join(widths)
    near = section_of(spam_rows({"softmax": 1.0}, symbols=(510,), widths=(12, 24)))
    assert "[below 12, 1" in near.tables[0].body[0][4].text


@pytest.mark.parametrize("rows", [ROWS, FEW], ids=["reached", "not"])
def test_all_words_of_the_figure_are_inside_it_and_every_mark_has_a_name(
    rows: list[dict[str, Any]],
) -> None:
    [drawing] = section_of(rows).drawings
    with mpl.rc_context(STYLE):
        figure = drawing.draw()
        figure.draw_without_rendering()
    needed, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert (
        needed.x0 > -0.01
        and needed.y0 > -0.01
        and needed.x1 < width + 0.01
        and needed.y1 < height + 0.01
    )
    names = [mark for named in figure.findobj(NamedMarks) for mark in named.marks]
    assert len(names) == 12


@pytest.mark.parametrize("state", ["done", "failed"])
def test_it_is_a_section_of_a_page_where_a_trial_is_done(state: str, tmp_path: Path) -> None:
    rows = ROWS if state == "done" else [fail(row, state="failed", cause="") for row in ROWS]
    page = report_on(rows, tmp_path, study=replace(STUDY, analyses=(REQUEST,))).path.read_text()
    assert page.count('id="thresholds"') == (state == "done")
    if state == "done":
        assert (
            len(csv_records(tmp_path / "thresholds.csv")) == 12
            and ">None<" not in page
            and ">nan<" not in page
        )
