from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from orchestrator.analysis import (
    contrast_numbers,
    difference_numbers,
    flatten,
    group_numbers,
    tidy,
)
from orchestrator.report.forest import Forest
from orchestrator.report.sections.groups import (
    contrast_section,
    difference_section,
    group_section,
)
from orchestrator.report.sections.section import Section
from search_spaces.analyses import Comparison, Differences, GroupTable
from search_spaces.averaging import STUDY as AVERAGING
from search_spaces.published import rows as printed_rows
from search_spaces.seeds import STUDY as SEEDS
from tests.support.synthetic_results import STUDY, csv_records, done_trial, report_on, trial_row

VALUES = {
    "softmax": [57.10, 57.01, 57.19, 56.98],
    "mos": [55.31, 54.80, 55.02, 54.99],
    "gss": [56.5],
}
ROWS = [
    *(
        done_trial(group, seed, test_perplexity=x, press_rank=100 * x)
        for group, values in VALUES.items()
        for seed, x in enumerate(values)
    ),
    trial_row("gss seed=1", "failed", config={"seed": 1}),
    trial_row("moc seed=0", "planned", config={"seed": 0}),
]
FRAME = flatten(ROWS).frame()
[TABLE] = [request for request in SEEDS.analyses if isinstance(request, GroupTable)]
ERRORS = {
    "gated": [9.0, 18.8, 28.9, 39.1, 48.8, 59.2, 70.0],
    "dense": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
}


def trials(values: Mapping[str, Sequence[float]], metric: str) -> pd.DataFrame:
    rows = [
        done_trial(group, seed, **{metric: x})
        for group, xs in values.items()
        for seed, x in enumerate(xs)
    ]
    return flatten(rows).frame()


def t_interval(values: Sequence[float]) -> tuple[float, float]:
    low, high = stats.t.interval(
        0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values)
    )
    return float(low), float(high)


def groups_of(frame: pd.DataFrame, request: GroupTable = TABLE, **keys: str) -> Section:
    return group_section(
        group_numbers(frame, request, **{"corpus": "ptb", "scale": "paper"} | keys)
    )


def forest_of(section: Section) -> pd.DataFrame:
    [drawing] = section.drawings
    assert isinstance(drawing, Forest)
    marks = drawing.marks
    return marks[marks["panel"] == marks["panel"].iloc[0]].assign(
        series=lambda marks: marks["series"].fillna("")
    )


def marks(section: Section, series: str = "") -> dict[str, list[float]]:
    frame = forest_of(section)
    of_series = frame[frame["series"].str.startswith(series)]
    return {
        name: list(of_series["value"][of_series["name"] == name].dropna())
        for name in dict.fromkeys(frame["name"])
    }


def intervals(section: Section) -> dict[str, tuple[float, float]]:
    frame = forest_of(section)
    bars = frame[frame["series"].str.startswith("mean")].dropna(subset=["low"])
    return dict(zip(bars["name"], zip(bars["low"], bars["high"], strict=True), strict=True))


def record(section: Section, file: str, line: int = 0) -> dict[str, Any]:
    return dict(section.written[file].iloc[line])


def test_marks_are_trials_and_intervals() -> None:
    section = groups_of(FRAME)
    assert list(marks(section)) == ["softmax", "mos", "gss (1 of 2)", "moc (0 of 1)"]
    softmax, mos, gss, moc = marks(section, "a trial").values()
    assert [softmax, mos, gss, moc] == [*VALUES.values(), []]
    assert marks(section, "mean")["mos"] == pytest.approx([np.mean(VALUES["mos"])])
    assert marks(section, "mean")["gss (1 of 2)"] == []
    drawn = intervals(section)
    assert list(drawn) == ["softmax", "mos"], "one trial has no interval"
    for name, ends in drawn.items():
        assert ends == pytest.approx(t_interval(VALUES[name]))
    mos_line = record(section, "groups.csv", 1)
    assert drawn["mos"] == (mos_line["test_perplexity_low"], mos_line["test_perplexity_high"])


def test_published_values_are_next_to_ours() -> None:
    printed = {
        row["model"]: [float(row["test_ppl_mean"])]
        for row in printed_rows("table2_seeds")
        if row["corpus"] == "ptb"
    }
    softmax, mos, gss, _ = marks(groups_of(FRAME), "published, PTB").values()
    assert [softmax, mos, gss] == [printed[model] for model in VALUES]


@pytest.mark.parametrize(("corpus", "scale"), [("ptb", "quick"), ("pydocs", "paper")])
def test_other_published_values_have_own_axes(corpus: str, scale: str) -> None:
    small = trials({"softmax": [310.0, 311.0, 312.0]}, "test_perplexity")
    section = groups_of(small, corpus=corpus, scale=scale)
    own_axes, published_axes = section.drawings[0].draw().axes
    assert 300 < own_axes.get_xlim()[0] < 310 and 312 < own_axes.get_xlim()[1] < 322
    assert (
        published_axes.get_xlim()[1] < 60
        and published_axes.get_xlabel() == "Test perplexity, published"
    )
    assert "differ from ours" in section.drawings[0].caption


def test_gain_is_next_to_papers() -> None:
    [request] = [request for request in AVERAGING.analyses if isinstance(request, Differences)]
    values = {
        "softmax NT-ASGD": [58.0],
        "mos NT-ASGD": [56.0],
        "softmax ET-ASGD": [57.0],
        "mos ET-ASGD": [55.5, 55.1],
    }
    frame = trials(values, "test_perplexity")
    section = difference_section(difference_numbers(frame, request, corpus="ptb", scale="paper"))
    nt, et = "mos NT-ASGD\nagainst softmax NT-ASGD", "mos ET-ASGD\nagainst softmax ET-ASGD"
    assert marks(section, "a trial") == {nt: [2.0], et: pytest.approx([1.5, 1.9])}
    assert marks(section, "mean") == {nt: [], et: [pytest.approx(1.7)]}
    table = {
        row["source"]: float(row["MoS"])
        for row in printed_rows("table1_reproduction")
        if row["metric"] != "rank"
    }
    published = marks(section, "published by the model's own paper")
    assert published == {nt: [table["reported"]], et: []}
    assert marks(section, "published by AAAI 2021") == {nt: [], et: [table["ours"]]}


def test_difference_has_its_tests_interval() -> None:
    request = Comparison(metric="test_perplexity", baselines={"mos": "softmax", "gss": "softmax"})
    section = contrast_section(contrast_numbers(FRAME, request, corpus="ptb"))
    mos, gss = "mos\nagainst softmax", "gss\nagainst softmax"
    differences = [x - y for x, y in zip(VALUES["mos"], VALUES["softmax"], strict=True)]
    above_mean = 56.5 - float(np.mean(VALUES["softmax"]))
    assert marks(section, "a trial") == {mos: differences, gss: [pytest.approx(above_mean)]}
    interval = stats.ttest_rel(VALUES["mos"], VALUES["softmax"]).confidence_interval(0.95)
    assert intervals(section) == {mos: pytest.approx((interval.low, interval.high))}
    assert [line[2].text for line in section.texts[0].body] == ["4 of 4", "unpaired, 1 + 4"]
    line = record(section, "tests.csv")
    assert marks(section, "mean")[mos] == [line["difference"]]
    assert intervals(section)[mos] == (line["difference_low"], line["difference_high"])


def test_unpaired_p_has_a_column() -> None:
    request = Comparison(
        baselines={"gated": "dense"},
        metric="test_error_percent",
        published={"ptb": {"gated": 0.62}},
    )
    frame = trials(ERRORS, "test_error_percent")
    table = contrast_section(contrast_numbers(frame, request, corpus="ptb")).texts[0]
    [gated] = (dict(zip(table.head, line, strict=True)) for line in table.body)
    p_value = stats.ttest_ind(ERRORS["gated"], ERRORS["dense"]).pvalue
    assert gated["unpaired p (as in the paper)"].text == f"{p_value:.3f}"
    assert gated["published PTB: p"].text == "0.620"


@pytest.mark.parametrize("state", ["done", "planned"])
def test_unmeasured_metric_is_a_caution(state: str) -> None:
    request = GroupTable(metrics=("presrank", "press_rank"))
    frame = trials({"mos": [5], "softmax": [6]}, "press_rank").assign(state=state)
    cautions = groups_of(frame, request).cautions
    assert [caution.partition(",")[0] for caution in cautions] == ["No done trial has presrank"] * (
        state == "done"
    )


def test_forest_marks_clipped_intervals() -> None:
    forest = Forest(
        name="a",
        caption="",
        marks=tidy(
            [
                {"name": "a", "series": "factor", "value": 2.0, "low": 1.5, "high": float("inf")},
                {"name": "b", "series": "factor", "value": 0.5, "low": 0.4, "high": 0.6},
                {"name": "c"},
            ]
        ),
        labels={"": "times"},
        null=1.0,
        logarithmic=True,
    )
    [axes] = forest.draw().axes
    points = {line.get_marker(): np.asarray(line.get_xydata()).tolist() for line in axes.lines}
    assert points["o"] == [[2.0, 0.0], [0.5, 1.0]] and points[">"] == [[axes.get_xlim()[1], 0.0]]
    assert [text.get_position()[1] for text in axes.texts] == [2]


def test_page_has_every_requested_section(tmp_path: Path) -> None:
    rows = [{**row, "trial_id": f"{index:064x}"} for index, row in enumerate(ROWS[:8])]
    comparison = Comparison(metric="test_perplexity", baselines={"mos": "softmax"})
    ranks = replace(comparison, metric="press_rank")
    analyses = (TABLE, comparison, ranks, replace(TABLE, metrics=("press_rank",)))
    page = report_on(rows, tmp_path, study=replace(STUDY, analyses=analyses)).path.read_text()
    offsets = [page.find(f'id="{anchor}"') for anchor in ("figure-groups", "figure-tests", "run")]
    assert offsets == sorted(offsets)
    for kind in ("groups", "tests"):
        assert page.count(f'id="{kind}"') == page.count(f'id="{kind}-2"') == 1
        assert (tmp_path / f"{kind}.csv").is_file()
    assert "press_rank_mean" in csv_records(tmp_path / "2_groups.csv")[0]
