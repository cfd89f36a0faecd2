from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import pytest

from orchestrator.analysis import (
    confounding_numbers,
    extrapolation_numbers,
    flatten,
    power_law_numbers,
    threshold_numbers,
)
from orchestrator.report.figures import STYLE
from orchestrator.report.hover import NamedMarks
from orchestrator.report.sections.confounding import confounding_section
from orchestrator.report.sections.extrapolation import extrapolation_section
from orchestrator.report.sections.power_laws import power_law_section
from orchestrator.report.sections.section import Section
from orchestrator.report.sections.thresholds import threshold_section
from search_spaces.analyses import Analysis, PartialCorrelations
from search_spaces.laws import Extrapolation, PowerLaw, Threshold
from tests.support.laws_and_settings import (
    LEARNED_AT,
    SETTINGS,
    head_rank_rows,
    settings_rows,
    spam_rows,
    width_rows,
)

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
SPAM = {"softmax": 1.0, "mos": 1.0, "softcap": 1.5}
LEARNED = spam_rows(SPAM)
FEW = spam_rows(SPAM, symbols=(100, 1000, 2000, 100_000), widths=(8, 16, 32, 64), seeds=1)
"""At V = 100, softmax needs less than the smallest width.

At V = 100,000, every layer needs more than the largest width.
"""
SECTIONS: dict[type[Analysis], tuple[Callable[..., Any], Callable[..., Section]]] = {
    PowerLaw: (power_law_numbers, power_law_section),
    Extrapolation: (extrapolation_numbers, extrapolation_section),
    Threshold: (threshold_numbers, threshold_section),
    PartialCorrelations: (confounding_numbers, confounding_section),
}


def section_of(results: list[dict[str, Any]], request: Analysis) -> Section:
    numbers_of, section = SECTIONS[type(request)]
    return section(numbers_of(flatten(results).frame(), request))


def records(section: Section, name: str) -> list[dict[Any, Any]]:
    return section.written[name].to_dict("records")


def test_findings_name_planted_factors() -> None:
    section = section_of(HEADS, LAWS)
    [finding] = section.findings
    outcomes = {(one.numbers["panel"], one.groups[0]): one.verdict for one in finding.verdicts}
    expected = {"mos": "higher", "gss": "no difference shown"}
    assert outcomes == {
        (kind, name): verdict
        for kind in ("language_model", "transformer")
        for name, verdict in expected.items()
    }
    for kind in ("LSTM: ", "Transformer: "):
        significant, _, insignificant = finding.sentence.partition(kind)[2].partition(
            "No difference"
        )
        assert "mos is better than softmax" in significant and "gss" not in significant
        assert insignificant.startswith(" from softmax was shown for gss")
    assert section.claim == "Others claim this (A 2024)."


def test_laws_are_exported_completely() -> None:
    section = section_of(HEADS[:54], LAWS)
    assert {name: len(frame) for name, frame in section.written.items()} == {
        "power_laws.csv": 3,
        "law_losses.csv": 18,
        "factors.csv": 2,
        "equal_ranks.csv": 12,
    }
    [mos] = (one for one in records(section, "factors.csv") if one["output_layer.name"] == "mos")
    assert mos["baseline"] == "softmax" and mos["factor_low"] < mos["factor"] < mos["factor_high"]
    assert mos["holm_p"] >= mos["p"]


def test_infinite_rank_is_a_symbol() -> None:
    rows = [
        {**row, "metrics": {"test_perplexity": row["metrics"]["test_perplexity"] * math.exp(-1)}}
        if row["config"]["output_layer"]["name"] == "mos"
        else row
        for row in HEADS[:54]
    ]
    section = section_of(rows, LAWS)
    texts = [cell.text for line in section.texts[2].body for cell in line]
    assert any(text.startswith("\N{INFINITY} [") for text in texts)
    for drawing in section.drawings:
        with mpl.rc_context(STYLE):
            drawing.draw().draw_without_rendering()


def test_misfits_and_missing_laws_are_named() -> None:
    rows = head_rank_rows({"softmax": 1.0, "mos": 2.0})
    for row in rows:
        if row["config"]["model"]["head_rank"] == 8:
            row["metrics"]["test_perplexity"] *= 1.3
    cautions = section_of(rows, LAWS).cautions
    assert any("more than the seeds' spread" in one and "softmax" in one for one in cautions)
    few = section_of([row for row in HEADS if row["config"]["model"]["head_rank"] < 16], LAWS)
    assert (
        "at least 4 sizes are needed, but there are 3" in few.sentences[0]
        and len(few.sentences) == 1
    )
    assert len(few.drawings) == 1 and few.written["factors.csv"].empty


def test_first_deviating_size_leads_findings() -> None:
    section = section_of(width_rows({16: 0.3, 8: 0.8}), OFF)
    [finding] = section.findings
    outcomes = {verdict.groups[0]: verdict.verdict for verdict in finding.verdicts}
    assert outcomes["16"] == "higher" and outcomes["32"] == "no difference shown"
    assert "first departs from the law fitted to larger widths at width 16" in finding.sentence
    assert "above what 5 larger sizes predict" in finding.sentence
    assert section.texts[0].body[1][-1].text == "above the law"
    assert [line["model.width"] for line in records(section, "extrapolation.csv")] == [32, 16, 8]
    [law] = records(section, "extrapolation_law.csv")
    assert law["fitted"] == "32 64 96 128 192" and law["E_low"] < law["E"] < law["E_high"]
    assert "does not show" in section_of(width_rows({}), OFF).sentences[0]
    few = section_of(width_rows({}, widths=(8, 16)), OFF)
    assert "is unknown" in few.sentences[0] and few.texts == () and len(few.drawings) == 1


def test_findings_name_widths_and_ratios() -> None:
    section = section_of(LEARNED, LEARNED_AT)
    widths, ratios, law = section.sentences
    significant, _, insignificant = ratios.partition("No difference")
    assert "gap to the entropy (nats) of at most 0.1" in widths and "softmax 12" in widths
    assert all(widths.count(f" at V = {V}") == 3 for V in (500, 1000, 2000, 4000))
    assert "exponents b" in law and law.count("[0.") == 3
    assert (
        significant.count("softcap 1.5") == significant.count("at V = ") == 4
        and "mos" not in significant
    )
    assert (
        insignificant.count("mos") == 4
        and "softcap" not in insignificant
        and "does not show" in insignificant
    )


def test_untrained_widths_name_their_side() -> None:
    section = section_of(FEW, LEARNED_AT)
    assert any("no power law over V for softmax and mos" in one for one in section.sentences)
    assert "softmax at V = 100 (below 8)" in section.sentences[1]
    assert "softcap at V = 100000 (above 64)" in section.sentences[1]
    assert any("For softcap, other" in caution for caution in section.cautions)
    widths = [line[4].text for line in section.texts[0].body]
    assert widths[0] == "below 8" and widths[-1] == "above 64" and "[" not in "".join(widths)
    near = section_of(spam_rows({"softmax": 1.0}, symbols=(510,), widths=(12, 24)), LEARNED_AT)
    assert "[below 12, 1" in near.texts[0].body[0][4].text


def test_finest_correlations_come_first() -> None:
    section = section_of(settings_rows(), RANKS)
    assert (
        "removing the effect of each triple of values of three settings, 1 of 2 metrics"
        in section.sentences[0]
    )
    assert "entropy rank" in section.sentences[0] and "Press rank" not in section.sentences[0]
    assert any("not robust" in finding and "Press rank" in finding for finding in section.sentences)
    assert "33 in 102" in section.sentences[-1]
    assert len(records(section, "confounding.csv")) == 3 * 5
    settings = {line["setting"] for line in records(section, "shares_of_settings.csv")}
    assert settings == {"all", *SETTINGS}


@pytest.mark.parametrize(
    ("rows", "request_"),
    [
        (HEADS[:54], LAWS),
        (width_rows({16: 0.3}), OFF),
        (settings_rows(), RANKS),
        (LEARNED, LEARNED_AT),
        (FEW, LEARNED_AT),
    ],
    ids=["laws", "extrapolation", "correlations", "reached", "not reached"],
)
def test_words_fit_and_marks_have_names(rows: list[dict[str, Any]], request_: Analysis) -> None:
    for drawing in section_of(rows, request_).drawings:
        with mpl.rc_context(STYLE):
            figure = drawing.draw()
            figure.draw_without_rendering()
        needed, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        assert needed.x0 > -0.01 and needed.y0 > -0.01
        assert needed.x1 < width + 0.01 and needed.y1 < height + 0.01
        assert any(named.marks for named in figure.findobj(NamedMarks))
