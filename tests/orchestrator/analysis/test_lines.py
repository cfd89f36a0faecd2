from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from orchestrator.analysis import LineNumbers, line_numbers, rows
from orchestrator.report.sections.lines import line_section
from orchestrator.report.sections.section import NOTHING
from search_spaces.analyses import Claim, Lines, Reach

CLAIM = Claim(
    text="b beats a at small x", metric="score", better="b", than="a", panels=(1.0,), x_up_to=4
)
REQUEST = Lines(
    x="width",
    by="layer",
    panel="alpha",
    metrics=("score", "loss"),
    logarithmic_x=True,
    logarithmic_y=("loss",),
    reaches=(Reach(metric="score", value=90), Reach(metric="loss", value=0.2, at_most=True)),
    claims=(CLAIM,),
    note="Nothing is printed.",
)
SCORES: dict[tuple[float, str, int], list[float]] = {
    (1.0, "a", 2): [10, 20], (1.0, "a", 4): [50, 60], (1.0, "a", 8): [89, 95],
    (1.0, "b", 2): [30, 40], (1.0, "b", 4): [55, 59], (1.0, "b", 8): [80, 85],
    (0.1, "a", 2): [95, 99], (0.1, "b", 2): [1, 2],
}  # fmt: skip


def frame(scores: dict[tuple[float, str, int], list[float]]) -> pd.DataFrame:
    records = [
        {
            "name": f"{layer} alpha={alpha} d={width} seed={seed}",
            "state": "done",
            "alpha": alpha,
            "layer": layer,
            "width": width,
            "score": float(score),
            "loss": 1 / score,
            "met_rule": int((layer, width, seed) != ("b", 8, 1)),
        }
        for (alpha, layer, width), values in scores.items()
        for seed, score in enumerate(values)
    ]
    return pd.DataFrame(records)


@pytest.fixture
def numbers() -> LineNumbers:
    return line_numbers(frame(SCORES), REQUEST)


def points(numbers: LineNumbers, panel: Any, metric: str, group: str) -> list[list[float]]:
    return [
        [point.x, point.mean, point.least, point.greatest, point.n]
        for point in rows(numbers.points)
        if (point.panel, point.metric, point.group) == (panel, metric, group)
    ]


def test_point_is_mean_of_trials(numbers: LineNumbers) -> None:
    assert points(numbers, 1.0, "score", "a") == [
        [2, 15, 10, 20, 2],
        [4, 55, 50, 60, 2],
        [8, 92, 89, 95, 2],
    ]
    assert (numbers.panels, numbers.groups) == ((1.0, 0.1), ("a", "b"))
    data = frame(SCORES)
    data.loc[0, "state"], data.loc[1, "score"] = "diverged", float("nan")
    assert [x for x, *_ in points(line_numbers(data, REQUEST), 1.0, "score", "a")] == [4, 8]


def test_reach_is_smallest_mean_x(numbers: LineNumbers) -> None:
    reaches = numbers.reached[["reach", "panel", "group", "x"]].to_numpy().tolist()
    score, loss = 0, 1
    assert reaches[:4] == [
        [score, 1.0, "a", 8],
        [score, 1.0, "b", None],
        [score, 0.1, "a", 2],
        [score, 0.1, "b", None],
    ]
    assert reaches[4] == [loss, 1.0, "a", 2] and reaches[-1] == [loss, 0.1, "b", None]


def claims(scores: dict[tuple[float, str, int], list[float]], request: Lines) -> list[list[str]]:
    checked = line_numbers(frame(scores), request).claims
    return checked[["asked", "holds", "apart", "apart_against"]].to_numpy().tolist()


def test_claims_count_means_and_trials() -> None:
    assert claims(SCORES, REQUEST) == [["2 4", "2 4", "2", ""]]
    swapped = replace(REQUEST, claims=(replace(CLAIM, better="a", than="b"),))
    assert claims(SCORES, swapped) == [["2 4", "", "", "2"]]
    findings = line_section(line_numbers(frame(SCORES), swapped)).sentences
    assert any("means do not agree" in sentence for sentence in findings)
    single = {key: values[:1] for key, values in SCORES.items()}
    assert claims(single, REQUEST) == [["2 4", "2 4", "", ""]], "a single trial has no spread"


def test_lower_metric_can_be_better() -> None:
    lower = replace(CLAIM, metric="loss", panels=(), x_up_to=None, lower_is_better=True)
    request = replace(REQUEST, claims=(lower,))
    assert claims(SCORES, request) == [["2 4 8", "2 4", "2", "8"], ["2", "", "", "2"]]


def test_section_names_reaches_and_claims(numbers: LineNumbers) -> None:
    section = line_section(numbers)
    text = "\n".join(section.sentences)
    for words in (
        "a needs width 8; b does not reach it up to width 8",
        "a reaches it at the smallest width tried, 2; b does not",
        "means agree",
        "1 fit stopped at the limit",
    ):
        assert words in text
    score = section.texts[0].body
    assert (score[0][2].text, score[2][4].text) == ("15 [10, 20]", "\N{EN DASH}")


def test_empty_line_reaches_nothing() -> None:
    scores = {key: values for key, values in SCORES.items() if key != (0.1, "b", 2)}
    reached = line_numbers(frame(scores), REQUEST).reached
    assert list(reached["group"]) == ["a", "b", "a", "a", "b", "a"]


@pytest.mark.parametrize(
    "data", [frame(SCORES).assign(state="planned"), frame(SCORES)[["name", "state"]]]
)
def test_no_results_no_figure(data: pd.DataFrame) -> None:
    assert line_section(line_numbers(data, REQUEST)) is NOTHING


def with_plain(**metrics: list[float]) -> pd.DataFrame:
    plain = pd.DataFrame(metrics).assign(name=["plain seed=0", "plain seed=1"], group="plain")
    trials = [frame(SCORES).assign(group="bent"), plain.assign(state="done")]
    return pd.concat(trials, ignore_index=True)


def test_reference_group_is_level_line() -> None:
    data = with_plain(alpha=[1.0, 1.0], score=[40.0, 60.0], loss=[1.0, 1.0])
    numbers = line_numbers(data, replace(REQUEST, reference="plain"))
    assert numbers.points.equals(line_numbers(frame(SCORES), REQUEST).points)
    assert numbers.references[["panel", "metric", "n", "mean"]].to_numpy().tolist() == [
        [1.0, "score", 2, 50],
        [1.0, "loss", 2, 1],
    ], "the other panel has no marks"
    [drawing] = line_section(numbers).drawings
    assert "Dashed line: plain, which has no width" in drawing.caption


def test_later_settings_are_lines() -> None:
    data = with_plain(score=[50.0, 50.0], **{"at 2 score": [40.0, 60.0]})
    after = {"at 2 ": ("a after", 2.0), "at 4 ": ("a after", 4.0)}
    request = replace(REQUEST, panel="", reference="plain", after=after)
    numbers = line_numbers(data, request)
    assert numbers.groups == ("a", "b", "a after")
    assert points(numbers, "", "score", "a after") == [[2, 50, 40, 60, 2]]
    assert not points(numbers, "", "loss", "a after")
    level = numbers.references.set_index("metric").loc["score", ["n", "least", "greatest"]]
    assert list(level) == [2, 50, 50]
    assert line_numbers(data.drop(columns="at 2 score"), request).groups == ("a", "b")
