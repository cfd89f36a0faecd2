"""What laws, extrapolations and correlations without the settings become on a page, in figures and
in files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from orchestrator.analysis import (
    confounding_numbers,
    extrapolation_numbers,
    flatten,
    power_law_numbers,
)
from orchestrator.report.figures import STYLE
from orchestrator.report.hover import NamedMarks
from orchestrator.report.sections.confounding import confounding_section
from orchestrator.report.sections.extrapolation import extrapolation_section
from orchestrator.report.sections.power_laws import power_law_section
from orchestrator.report.sections.section import Section
from search_spaces.analyses import Analysis, PartialCorrelations
from search_spaces.laws import Extrapolation, PowerLaw
from tests.support.laws_and_settings import SETTINGS, head_rank_rows, settings_rows, width_rows
from tests.support.synthetic_results import STUDY, csv_records, fail, report_on

LAWS = PowerLaw(
    x="model.head_rank",
    by="output_layer.name",
    baseline="softmax",
    panel="kind",
    claim="Others claim this (A 2024).",
)
KINDS = ("language_model", "transformer")
HEADS = head_rank_rows({"softmax": 1.0, "gss": 1.0, "mos": 2.0}, kinds=KINDS)
OFF = Extrapolation(x="model.width")
RANKS = PartialCorrelations(
    metrics=("press_rank", "entropy_rank", "kl_rank_1e-3"), settings=SETTINGS
)


def section_of(rows: list[dict[str, Any]], request: Analysis) -> Section:
    frame = flatten(rows).frame()
    if isinstance(request, PowerLaw):
        laws = power_law_numbers(frame, request)
        assert laws is not None
        return power_law_section(laws)
    if isinstance(request, Extrapolation):
        held_out = extrapolation_numbers(frame, request)
        assert held_out is not None
        return extrapolation_section(held_out)
    assert isinstance(request, PartialCorrelations)
    correlations = confounding_numbers(frame, request)
    assert correlations is not None
    return confounding_section(correlations)


def records(section: Section, name: str) -> list[dict[str, Any]]:
    head, *lines = section.files[name]
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_a_sentence_a_kind_of_model_says_which_heads_stand_for_another_rank_and_which_are_not_told_apart() -> (
    None
):
    section = section_of(HEADS, LAWS)
    for kind in ("LSTM", "Transformer"):
        apart, same = (finding for finding in section.findings if finding.startswith(f"{kind}: "))
        assert (
            "softmax has another head rank than some groups. It is this many times theirs: mos "
            in apart
        )
        assert (
            "Holm-adjusted p" in apart
            and "no other head rank than softmax's was shown" in same
            and "gss " in same
        )
        assert "which does not show that they are equal" in same
    assert section.remarks == ("Others claim this (A 2024).",)


def test_every_number_of_the_laws_is_in_a_file() -> None:
    section = section_of(HEADS[:54], LAWS)
    assert {name: len(lines) - 1 for name, lines in section.files.items()} == {
        "power_laws.csv": 3,
        "law_losses.csv": 18,
        "factors.csv": 2,
        "equal_ranks.csv": 12,
    }
    mos = next(
        line for line in records(section, "factors.csv") if line["output_layer.name"] == "mos"
    )
    assert mos["baseline"] == "softmax" and mos["factor_low"] < mos["factor"] < mos["factor_high"]
    assert mos["holm_p"] >= mos["p"]
    assert all(
        line["E_low"] <= line["E"] <= line["E_high"] for line in records(section, "power_laws.csv")
    )


def test_a_rank_that_no_plain_head_has_is_written_as_infinite() -> None:
    rows = [
        {**row, "metrics": {"test_perplexity": row["metrics"]["test_perplexity"] * math.exp(-1)}}
        if row["config"]["output_layer"]["name"] == "mos"
        else row
        for row in HEADS[:54]
    ]
    section = section_of(rows, LAWS)
    texts = [cell.text for line in section.tables[2].body for cell in line]
    assert any(text.startswith("\N{INFINITY} [") for text in texts)
    for drawing in section.drawings:
        with mpl.rc_context(STYLE):
            drawing.draw().draw_without_rendering()


def test_laws_that_are_not_pinned_or_misfit_are_named_among_what_is_not_said() -> None:
    rows = head_rank_rows({"softmax": 1.0, "mos": 2.0})
    for row in rows:
        if row["config"]["model"]["head_rank"] == 8:
            row["metrics"]["test_perplexity"] *= 1.3
    section = section_of(rows, LAWS)
    assert any(
        "leaves more than the seeds' spread" in caution and "softmax" in caution
        for caution in section.cautions
    )
    few = section_of([row for row in HEADS if row["config"]["model"]["head_rank"] < 16], LAWS)
    assert few.findings == (
        "Nothing can be held against softmax yet: a law of 3 numbers needs 4 different sizes, "
        "there are 3.",
    )
    assert len(few.drawings) == 1 and few.files["factors.csv"] == [["panel", "output_layer.name"]]


@pytest.mark.parametrize("seeds", [2, 3])
def test_two_seeds_give_the_limit_too_wide_an_interval_and_the_page_says_so(seeds: int) -> None:
    cautions = section_of([row for row in HEADS if row["config"]["seed"] <= seeds], LAWS).cautions
    assert any("With two seeds a size" in caution for caution in cautions) == (seeds == 2)


def test_where_the_loss_leaves_the_law_is_the_first_sentence() -> None:
    section = section_of(width_rows({16: 0.3, 8: 0.8}), OFF)
    assert section.findings[0].startswith(
        "From large to small, the loss first leaves the law of all larger width at width 16"
    )
    assert "above what 5 larger sizes predict (Bonferroni-adjusted p" in section.findings[0]
    assert [cell.text for cell in section.tables[0].body[1]][-1] == "above the law"
    assert [line["model.width"] for line in records(section, "extrapolation.csv")] == [32, 16, 8]
    [law] = records(section, "extrapolation_law.csv")
    assert law["fitted"] == "32 64 96 128 192" and law["E_low"] < law["E"] < law["E_high"]
    none = section_of(width_rows({}), OFF)
    assert (
        none.findings[0].startswith("The loss is not told apart from the law")
        and "not show that" in none.findings[0]
    )
    few = section_of(width_rows({}, widths=(8, 16)), OFF)
    assert "cannot be said" in few.findings[0] and few.tables == () and len(few.drawings) == 1


def test_larger_models_by_parameters_have_larger_numbers_of_them() -> None:
    rows = width_rows({16: 0.3, 8: 0.8})
    for row in rows:
        row["metrics"]["parameters"] = 1000 * row["config"]["model"]["width"]
    section = section_of(rows, Extrapolation(x="parameters"))
    assert section.heading == "Where the loss leaves the law of larger numbers of parameters"
    assert "the law of all larger numbers of parameters at parameters 16000:" in section.findings[0]
    assert not any("larger parameters" in finding for finding in section.findings)


def test_correlations_are_said_the_finest_way_first_and_that_the_choice_decides() -> None:
    section = section_of(settings_rows(), RANKS)
    assert (
        "a level for each triple of values of three settings taken away, 1 of 2 metrics"
        in section.findings[0]
    )
    assert "entropy rank" in section.findings[0] and "Press rank" not in section.findings[0]
    assert any(
        "How the settings are taken away decides" in finding and "Press rank" in finding
        for finding in section.findings
    )
    assert (
        section.findings[-1].endswith("1e-3 is 33 in 102 of 108 trials.")
        or "33 in 102" in section.findings[-1]
    )
    shown = [cell.text for table in section.tables for line in table.body for cell in line]
    assert not any("nan" in text.lower() for text in shown)
    assert len(records(section, "confounding.csv")) == 3 * 5
    assert {line["setting"] for line in records(section, "shares_of_settings.csv")} == {
        "all",
        *SETTINGS,
    }


def test_where_no_correlation_is_told_from_zero_the_largest_is_named() -> None:
    section = section_of(settings_rows(), replace(RANKS, metrics=("press_rank",)))
    assert (
        "none of 1 metric has a correlation" in section.findings[0]
        and "Press rank" in section.findings[0]
    )


@pytest.mark.parametrize(
    ("rows", "request_"),
    [(HEADS[:54], LAWS), (width_rows({16: 0.3}), OFF), (settings_rows(), RANKS)],
    ids=["laws", "extrapolation", "correlations"],
)
def test_all_words_of_the_figures_are_inside_them_and_marks_have_names(
    rows: list[dict[str, Any]], request_: Analysis
) -> None:
    for drawing in section_of(rows, request_).drawings:
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
        assert any(named.marks for named in figure.findobj(NamedMarks))


@pytest.mark.parametrize("state", ["done", "failed"])
def test_all_three_are_sections_of_a_page(state: str, tmp_path: Path) -> None:
    rows = settings_rows()[::3]
    for place, row in enumerate(rows):
        row["config"] |= {"model": {"head_rank": 2 ** (place % 5), "width": 8 * 2 ** (place % 6)}}
        row["config"] |= {"output_layer": {"name": ("softmax", "mos")[place % 2]}}
    if state == "failed":
        rows = [fail(row, state="failed", cause="") for row in rows]
    page = report_on(
        rows, tmp_path, study=replace(STUDY, analyses=(LAWS, OFF, RANKS))
    ).path.read_text()
    count = int(state == "done")
    for key in ("power-laws", "extrapolation", "confounding"):
        assert page.count(f'id="{key}"') == count
    if state == "done":
        assert (
            len(csv_records(tmp_path / "confounding.csv")) == 15
            and ">None<" not in page
            and "nan" not in page
        )
