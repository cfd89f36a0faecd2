"""Lines over a config value: means and ranges, where they get how far, and claims held against
them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.lines import LineNumbers, line_numbers
from orchestrator.report.figures import draw
from orchestrator.report.sections.lines import line_section
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
    rows = [
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
    return pd.DataFrame(rows)


@pytest.fixture
def numbers() -> LineNumbers:
    return line_numbers(frame(SCORES), REQUEST)


def test_a_point_is_the_mean_of_its_done_trials_with_their_ends(numbers: LineNumbers) -> None:
    line = numbers.lines[1.0, "score", "a"]
    assert [(x, p.mean, p.least, p.greatest, p.n) for x, p in line.items()] == [
        (2, 15, 10, 20, 2), (4, 55, 50, 60, 2), (8, 92, 89, 95, 2),
    ]  # fmt: skip
    assert (numbers.panels, numbers.groups, len(numbers.lines)) == ((1.0, 0.1), ("a", "b"), 8)
    data = frame(SCORES)
    data.loc[0, "state"], data.loc[1, "score"] = "diverged", float("nan")
    assert list(line_numbers(data, REQUEST).lines[1.0, "score", "a"]) == [4, 8]


def test_where_a_line_first_gets_so_far_is_read_off_its_means(numbers: LineNumbers) -> None:
    found = {
        (line.reach.metric, line.panel, by): x
        for line in numbers.reached
        for by, x in line.x.items()
    }
    assert found["score", 1.0, "a"] == 8 and found["score", 1.0, "b"] is None
    assert found["score", 0.1, "a"] == 2 and found["score", 0.1, "b"] is None
    assert found["loss", 1.0, "a"] == 2 and found["loss", 0.1, "b"] is None, (
        "1 / 10 and 1 / 20; 1 and 1 / 2"
    )


def test_claims_are_counted_in_means_and_trial_by_trial(numbers: LineNumbers) -> None:
    [claim] = numbers.claims
    assert (claim.places, claim.holds, claim.apart, claim.apart_against) == (
        (2, 4),
        (2, 4),
        (2,),
        (),
    )
    swapped = {
        (alpha, "ab"["ba".index(layer)], x): values for (alpha, layer, x), values in SCORES.items()
    }
    failing = line_numbers(frame(swapped), REQUEST)
    assert (failing.claims[0].holds, failing.claims[0].apart_against) == ((), (2,))
    assert any("ours do not agree" in sentence for sentence in line_section(failing).findings)
    [single] = line_numbers(
        frame({key: values[:1] for key, values in SCORES.items()}), REQUEST
    ).claims
    assert (single.holds, single.apart, single.apart_against) == ((2, 4), (), ())


def test_a_lower_metric_can_be_the_better_one() -> None:
    claim = Claim(
        text="b has the lower loss", metric="loss", better="b", than="a", lower_is_better=True
    )
    request = Lines(x="width", by="layer", panel="alpha", metrics=("loss",), claims=(claim,))
    first, second = line_numbers(frame(SCORES), request).claims
    assert (first.places, first.holds, first.apart, first.apart_against) == (
        (2, 4, 8),
        (2, 4),
        (2,),
        (8,),
    )
    assert (second.panel, second.holds, second.apart_against) == (0.1, (), (2,))


def test_the_findings_say_what_the_numbers_say(numbers: LineNumbers) -> None:
    text = "\n".join(line_section(numbers).findings)
    assert "Score of at least 90 at alpha = 1.0" not in text
    assert "is reached first at width 8 by a; nowhere up to 8 by b." in text
    assert "is reached already at width 2, the least tried, by a; nowhere up to 2 by b." in text
    assert (
        "ours agree in the mean: by score, b is better than a in the mean at 2 of 2 places" in text
    )
    assert "every one of its trials is better at 1, and worse at 0" in text
    assert "1 fit stopped at the limit" in text and "b alpha=1.0 d=8 seed=1" in text


def test_nothing_is_said_of_a_line_without_a_trial_in_a_panel() -> None:
    scores = {key: values for key, values in SCORES.items() if key != (0.1, "b", 2)}
    numbers = line_numbers(frame(scores), REQUEST)
    assert [set(reached.x) for reached in numbers.reached] == [{"a", "b"}, {"a"}, {"a", "b"}, {"a"}]
    text = "\n".join(line_section(numbers).findings)
    assert "already at width 2, the least tried, by a." in text and "nowhere up to 2" not in text
    lost = frame(scores)
    lost.loc[lost["alpha"] == 0.1, "state"] = "failed"
    assert "0.1" not in "\n".join(line_section(line_numbers(lost, REQUEST)).findings)


def test_tables_and_files_hold_every_point(numbers: LineNumbers) -> None:
    section = line_section(numbers)
    assert [len(table.body) for table in section.texts] == [4, 4, 1]
    assert section.texts[0].body[0][2].text == "15 [10, 20]"
    assert section.texts[0].body[2][4].text == "\N{EN DASH}", "no trial at this x"
    assert len(section.files["lines.csv"]) == 1 + 2 * len(SCORES)
    assert section.files["claims.csv"][1][-4:] == ["2 4", "2 4", "2", ""]


def test_a_panel_has_ticks_at_its_own_places(numbers: LineNumbers) -> None:
    """Those of another kind of model, such as 15, 30 and 61 beside 16, 32 and 64, would run into
    them."""
    figure = line_section(numbers).drawings[0].draw()
    assert [axes.get_xticks().tolist() for axes in figure.axes] == [[2, 4, 8], [2], [2, 4, 8], [2]]


def test_every_line_has_a_colour_and_a_marker_of_its_own(
    numbers: LineNumbers, tmp_path: Path
) -> None:
    drawing = line_section(numbers).drawings[0]
    figure, svg = drawing.draw(), draw(drawing, tmp_path)[f"{drawing.name}.svg"].decode()
    assert "alpha = 0.1" in svg and "Score" in svg
    assert "mathdefault" not in svg, "labels of a logarithmic axis are numbers as one reads them"
    drawn_lines = [
        line
        for line in figure.axes[0].lines
        if np.size(line.get_xdata()) == 3 and line.get_linewidth() == 1.2
    ]
    looks = {(line.get_color(), line.get_marker()) for line in drawn_lines}
    assert len(looks) == 2 and len({marker for _, marker in looks}) == 2


@pytest.mark.parametrize(
    "data", [frame(SCORES).assign(state="planned"), frame(SCORES)[["name", "state"]]]
)
def test_without_results_there_is_a_sentence_and_no_figure(data: pd.DataFrame) -> None:
    section = line_section(line_numbers(data, REQUEST))
    assert section.findings == ("No trial has a result to draw yet.",)
    assert not section.drawings and not section.texts


def test_a_group_without_such_settings_is_a_level_line_and_no_line_of_its_own(
    tmp_path: Path,
) -> None:
    plain = [
        {
            "name": f"plain seed={seed}",
            "group": "plain",
            "state": "done",
            "alpha": 1.0,
            "score": score,
            "loss": 1.0,
        }
        for seed, score in enumerate((40.0, 60.0))
    ]
    data = pd.concat([frame(SCORES).assign(group="bent"), pd.DataFrame(plain)], ignore_index=True)
    numbers = line_numbers(data, replace(REQUEST, reference="plain"))
    assert (
        numbers.groups == ("a", "b") and numbers.lines == line_numbers(frame(SCORES), REQUEST).lines
    )
    level = numbers.references[1.0, "score"]
    assert (level.n, level.mean, level.least, level.greatest) == (2, 50, 40, 60)
    assert set(numbers.references) == {(1.0, "score"), (1.0, "loss")}, "none in the other panel"
    [drawing] = line_section(numbers).drawings
    assert "Dashed: plain, which has no width" in drawing.caption
    figure, svg = drawing.draw(), draw(drawing, tmp_path)[f"{drawing.name}.svg"].decode()
    dashed = [line for axes in figure.axes for line in axes.lines if line.get_linestyle() == "--"]
    assert sorted(float(line.get_ydata()[0]) for line in dashed) == [1.0, 50.0]  # type: ignore[index, arg-type]
    assert ">plain<" in svg


def test_points_measured_after_training_are_lines_of_their_own() -> None:
    """They lie on the trials of the reference, whose level they leave as it is."""
    plain = [
        {
            "name": f"plain seed={seed}",
            "group": "plain",
            "state": "done",
            "score": 50.0,
            "at 2 score": score,
        }
        for seed, score in enumerate((40.0, 60.0))
    ]
    data = pd.concat([frame(SCORES).assign(group="bent"), pd.DataFrame(plain)], ignore_index=True)
    after = {"at 2 ": ("a after", 2.0), "at 4 ": ("a after", 4.0)}
    request = Lines(
        x="width", by="layer", metrics=("score", "loss"), reference="plain", after=after
    )
    numbers = line_numbers(data, request)
    assert numbers.groups == ("a", "b", "a after")
    [(x, point)] = numbers.lines[None, "score", "a after"].items()
    assert (x, point.n, point.mean, point.least, point.greatest) == (2, 2, 50, 40, 60)
    assert not numbers.lines[None, "loss", "a after"]
    level = numbers.references[None, "score"]
    assert (level.n, level.least, level.greatest) == (2, 50, 50)
    unmeasured = line_numbers(data.drop(columns="at 2 score"), request)
    assert unmeasured.groups == ("a", "b")
    assert {key: line for key, line in numbers.lines.items() if key[2] != "a after"} == dict(
        unmeasured.lines
    )


def test_a_figure_has_a_dotted_line_at_a_value_that_is_asked_for(numbers: LineNumbers) -> None:
    drawn = line_section(numbers).drawings[0].draw().axes[0].lines
    assert 90 in [line.get_ydata()[0] for line in drawn if line.get_linestyle() == ":"]  # type: ignore[index]
