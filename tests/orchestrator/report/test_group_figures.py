"""A dot a trial, the mean with its interval and the published value: where they are drawn, beside
numbers made here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from scipy import stats

from orchestrator.analysis.contrasts import contrast_numbers
from orchestrator.analysis.frames import flatten
from orchestrator.analysis.groups import difference_numbers, group_numbers
from orchestrator.report.hover import NamedMarks
from orchestrator.report.sections.groups import difference_section, group_section
from orchestrator.report.sections.section import Section
from orchestrator.report.sections.significance import contrast_section
from orchestrator.store.records import StudyKey
from search_spaces.analyses import Comparison, Differences, GroupTable
from search_spaces.averaging import STUDY as AVERAGING
from search_spaces.published import rows as printed_rows
from search_spaces.seeds import STUDY as SEEDS
from tests.support.synthetic_results import STUDY, done_trial, report_on, trial_row

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


def t_interval(values: Sequence[float]) -> tuple[float, float]:
    low, high = stats.t.interval(
        0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values)
    )
    return float(low), float(high)


def panels(section: Section) -> dict[str, Axes]:
    """By what they show."""
    [drawing] = section.drawings
    return {
        axes.get_xlabel().replace("\n", " "): axes
        for axes in drawing.draw().axes
        if axes.get_visible()
    }


def rows_of(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def dots(axes: Axes) -> dict[str, list[float]]:
    """The trials' values by the names of their rows."""
    marks = np.asarray(axes.collections[0].get_offsets())
    names = rows_of(axes)
    return {
        name: [float(x) for x, y in marks if round(y) == place] for place, name in enumerate(names)
    }


def intervals(axes: Axes) -> dict[str, tuple[float, float]]:
    """The lines that lie in one row."""
    lines = [np.asarray(line.get_xydata()) for line in axes.lines]
    ends = [
        line
        for line in lines
        if len(line) == 2 and line[0, 1] == line[1, 1] and line[0, 0] != line[1, 0]
    ]
    return {rows_of(axes)[round(y)]: (float(low), float(high)) for (low, y), (high, _) in ends}


def marks(axes: Axes, label: str) -> dict[str, float]:
    """The places of the means, or of whom else the legend names so."""
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    line = handles[label] if label.startswith("mean") else handles[label][0]
    return {rows_of(axes)[round(y)]: float(x) for x, y in np.asarray(line.get_xydata())}


def test_dots_are_the_trials_and_intervals_those_of_student() -> None:
    section = group_section(group_numbers(FRAME, TABLE, corpus="ptb", scale="paper"))
    shown = panels(section)
    assert list(shown) == ["Test perplexity", "Press rank"], (
        "the same at every seed, or no value: no panel"
    )
    axes = shown["Test perplexity"]
    assert rows_of(axes) == ["softmax", "mos", "gss (1 of 2)", "moc (0 of 1)"]
    assert dots(axes) == {
        "softmax": VALUES["softmax"],
        "mos": VALUES["mos"],
        "gss (1 of 2)": [56.5],
        "moc (0 of 1)": [],
    }
    several = {name: values for name, values in VALUES.items() if len(values) > 1}
    assert marks(axes, "mean, 95% interval") == pytest.approx(
        {name: np.mean(xs) for name, xs in several.items()}
    )
    drawn = intervals(axes)
    assert list(drawn) == ["softmax", "mos"], "one trial has no interval"
    for name, ends in drawn.items():
        assert ends == pytest.approx(t_interval(VALUES[name]))
    head, *lines = section.files["groups.csv"]
    told = dict(zip(head, lines[1], strict=True))
    assert (told["test_perplexity_low"], told["test_perplexity_high"]) == drawn["mos"]


def test_published_values_stand_beside_ours_at_scale_paper() -> None:
    axes = panels(group_section(group_numbers(FRAME, TABLE, corpus="ptb", scale="paper")))[
        "Test perplexity"
    ]
    printed = {
        row["model"]: float(row["test_ppl_mean"])
        for row in printed_rows("table2_seeds")
        if row["corpus"] == "ptb"
    }
    names = {"softmax": "softmax", "mos": "mos", "gss": "gss (1 of 2)"}
    assert marks(axes, "published, PTB") == {row: printed[model] for model, row in names.items()}


@pytest.mark.parametrize(("corpus", "scale"), [("ptb", "quick"), ("pydocs", "paper")])
def test_of_other_models_or_texts_they_have_axes_of_their_own(corpus: str, scale: str) -> None:
    small = flatten(
        [done_trial("softmax", seed, test_perplexity=310.0 + seed) for seed in range(3)]
    ).frame()
    section = group_section(group_numbers(small, TABLE, corpus=corpus, scale=scale))
    shown = panels(section)
    low, high = shown["Test perplexity"].get_xlim()
    assert 300 < low < 310 and 312 < high < 322
    assert marks(shown["Test perplexity, published"], "published, PTB") == {"softmax": 57.08}
    assert (
        "on axes of their own, as they are of models or a text other than ours"
        in section.drawings[0].caption
    )


def test_a_gain_is_drawn_beside_what_each_paper_says_of_it() -> None:
    [request] = [request for request in AVERAGING.analyses if isinstance(request, Differences)]
    xs = {
        "softmax NT-ASGD": [58.0],
        "mos NT-ASGD": [56.0],
        "softmax ET-ASGD": [57.0],
        "mos ET-ASGD": [55.5, 55.1],
    }
    rows = [
        done_trial(group, seed, test_perplexity=x)
        for group, values in xs.items()
        for seed, x in enumerate(values)
    ]
    section = difference_section(
        difference_numbers(flatten(rows).frame(), request, corpus="ptb", scale="paper")
    )
    [axes] = panels(section).values()
    nt, et = "mos NT-ASGD\nagainst softmax NT-ASGD", "mos ET-ASGD\nagainst softmax ET-ASGD"
    assert {name: pytest.approx(values) for name, values in dots(axes).items()} == {
        nt: [2.0],
        et: [1.5, 1.9],
    }
    assert marks(axes, "mean") == {et: pytest.approx(1.7)} and intervals(axes) == {}
    table = {
        row["source"]: row["MoS"]
        for row in printed_rows("table1_reproduction")
        if row["metric"] != "rank"
    }
    assert marks(axes, "the model's own paper, PTB") == {nt: float(table["reported"])}
    assert marks(axes, "AAAI 2021, PTB") == {et: float(table["ours"])}


def test_a_tested_difference_has_the_interval_of_its_test_and_a_line_at_zero() -> None:
    numbers = contrast_numbers(
        FRAME, Comparison(baselines={"mos": "softmax", "gss": "softmax"}), corpus="ptb"
    )
    section = contrast_section(numbers)
    [axes] = panels(section).values()
    mos, gss = rows_of(axes)
    assert (mos, gss) == ("mos\nagainst softmax", "gss\nagainst softmax")
    differences = [x - y for x, y in zip(VALUES["mos"], VALUES["softmax"], strict=True)]
    above_mean = 56.5 - float(np.mean(VALUES["softmax"]))
    assert dots(axes) == {mos: pytest.approx(differences), gss: pytest.approx([above_mean])}
    interval = stats.ttest_rel(VALUES["mos"], VALUES["softmax"]).confidence_interval(0.95)
    assert intervals(axes) == {mos: pytest.approx((interval.low, interval.high))}
    assert [0, 0] in [list(np.asarray(line.get_xdata())) for line in axes.lines]
    head, line, _ = section.files["tests.csv"]
    told = dict(zip(head, line, strict=True))
    assert marks(axes, "mean, 95% interval") == {mos: told["difference"]}
    assert intervals(axes)[mos] == (told["difference_low"], told["difference_high"])


def test_of_pairs_each_seed_has_its_difference() -> None:
    seeds = {
        "gated": {1: 9.0, 2: 18.0, 3: 29.5, 5: 1.0},
        "dense": {3: 30.0, 1: 10.0, 2: 20.0, 4: 7.0},
    }
    rows = [
        done_trial(group, seed, test_error_percent=x)
        for group, xs in seeds.items()
        for seed, x in xs.items()
    ]
    request = Comparison(baselines={"gated": "dense"}, metric="test_error_percent")
    [axes] = panels(
        contrast_section(contrast_numbers(flatten(rows).frame(), request, corpus="none"))
    ).values()
    [differences] = dots(axes).values()
    assert differences == [-1.0, -2.0, -0.5], "seeds 4 and 5 have no partner"
    [drawn] = intervals(axes).values()
    assert drawn == pytest.approx(t_interval([-1.0, -2.0, -0.5]))


def test_a_pointer_meets_the_name_of_every_trial() -> None:
    section = group_section(group_numbers(FRAME, TABLE, corpus="ptb", scale="paper"))
    named = [
        mark
        for marks in panels(section)["Test perplexity"].findobj(NamedMarks)
        for mark in marks.marks
    ]
    trials = {mark.trial_id: mark for mark in named if mark.trial_id}
    done = {row["trial_id"]: row["metrics"]["test_perplexity"] for row in ROWS if row["metrics"]}
    assert {trial_id: float(mark.points[0, 0]) for trial_id, mark in trials.items()} == done
    assert trials["gss seed=0"].name == "gss seed=0\nTest perplexity 56.500"


def test_a_mean_of_equal_values_is_said_to_be_one_where_an_interval_would_have_no_width() -> None:
    ranks = {"softmax": (402, 402), "mos": (500, 502)}
    rows = [
        done_trial(group, seed, press_rank=x)
        for group, xs in ranks.items()
        for seed, x in enumerate(xs)
    ]
    request = GroupTable(metrics=("press_rank",))
    shown = panels(
        group_section(group_numbers(flatten(rows).frame(), request, corpus="x", scale="quick"))
    )
    named = [mark for marks in shown["Press rank"].findobj(NamedMarks) for mark in marks.marks]
    low, high = t_interval([500, 502])
    assert [mark.name.splitlines()[-1] for mark in named if "mean of 2" in mark.name] == [
        "all equal",
        f"95% interval {low:.2f} to {high:.2f}",
    ]


def test_a_metric_that_no_done_trial_has_is_said_to_be_lacking() -> None:
    request = GroupTable(metrics=("presrank", "press_rank"))
    rows = [done_trial("mos", 1, press_rank=5), done_trial("softmax", 1)]
    for these, said in (
        (rows, True),
        ([{**row, "state": "planned", "metrics": {}} for row in rows], False),
    ):
        section = group_section(
            group_numbers(flatten(these).frame(), request, corpus="x", scale="quick")
        )
        sentence = "No done trial has presrank, which this study asks for; metrics are the columns of `results`."
        assert section.cautions == ((sentence,) if said else ())


def test_a_row_is_as_high_among_thirty_groups_as_among_three() -> None:
    def row_in(groups: int) -> float:
        rows = [done_trial(f"g{i}", 1, test_perplexity=float(i)) for i in range(groups)]
        request = GroupTable(metrics=("test_perplexity",))
        section = group_section(
            group_numbers(flatten(rows).frame(), request, corpus="x", scale="quick")
        )
        figure = section.drawings[0].draw()
        figure.draw_without_rendering()
        return figure.axes[0].get_position().height * figure.get_figheight() / groups

    assert row_in(30) == pytest.approx(row_in(3), rel=0.3)


@pytest.mark.parametrize("state", ["done", "planned"])
def test_the_page_leads_with_the_figure_once_a_trial_is_done(state: str, tmp_path: Path) -> None:
    rows = [
        {**row, "trial_id": f"{place:064x}", "state": state} for place, row in enumerate(ROWS[:8])
    ]
    study = replace(STUDY, analyses=(TABLE, Comparison(baselines={"mos": "softmax"})))
    key = StudyKey(study="made_up", scale="quick", corpus="pydocs")
    page = report_on(rows, tmp_path, study=study, key=key).path.read_text()
    places = [page.find(f'id="{anchor}"') for anchor in ("figure-groups", "run", "figure-tests")]
    assert places == sorted(places) if state == "done" else places[0] == places[2] == -1
