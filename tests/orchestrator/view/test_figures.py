"""Figures hold the numbers that they are of."""

from __future__ import annotations

import math
from base64 import b64decode
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orchestrator.view import curve_figures, study_figures
from tests.orchestrator.view.test_rows import table
from tests.support.synthetic_results import training


def decoded(values: Any) -> Any:
    array = np.frombuffer(b64decode(values["bdata"]), dtype="<f8")
    return (
        array.reshape([int(n) for n in values["shape"].split(",")]) if "shape" in values else array
    )


def axes(
    x: str, y: str, colour: str | None = None, size: str | None = None
) -> dict[str, str | None]:
    return {"x": x, "y": y, "colour": colour, "size": size}


def test_a_point_is_a_trial_with_both_numbers() -> None:
    columns: dict[str, list[Any]] = {
        "a": [1, 2, None, 4, 5],
        "b": [1.5, None, 3, 0, 2],
        "c": [7, 8, 9, None, 6],
    }
    content = table(columns, ["<b>x", "y", "z", "w", "v"])
    (trace,) = study_figures.scatter(content, axes("a", "b", "c"))["data"]
    assert list(decoded(trace["x"])) == [1, 4, 5] and list(decoded(trace["y"])) == [1.5, 0, 2]
    assert trace["customdata"] == [content.ids[place][:12] for place in (0, 3, 4)]
    assert trace["text"] == ["&lt;b&gt;x", "w", "v"]
    assert np.array_equal(decoded(trace["marker"]["color"]), [7, np.nan, 6], equal_nan=True)


def test_a_number_that_all_points_share_has_no_scale_of_colours() -> None:
    content = table({"a": [1, 2, 3], "b": [1, 2, None], "c": [0.02, 0.02, 1e8]})
    (trace,) = study_figures.scatter(content, axes("a", "b", "c"))["data"]
    assert isinstance(trace["marker"]["color"], str) and "colorbar" not in trace["marker"]


def test_a_text_colours_by_kind_and_makes_an_axis_of_texts() -> None:
    content = replace(table({"m": [1.0, 2.0, 3.0, 4.0]}), settings={"layer": ["a", "b", "a", None]})
    traces = study_figures.scatter(content, axes("layer", "m", "layer"), ["y"])
    assert [(trace["name"], trace["x"], list(decoded(trace["y"]))) for trace in traces["data"]] == [
        ("a", ["a", "a"], [1, 3]),
        ("b", ["b"], [2]),
    ]
    assert len({trace["marker"]["color"] for trace in traces["data"]}) == 2
    assert (
        traces["layout"]["yaxis"]["type"] == "log"
        and traces["layout"]["xaxis"]["type"] == "category"
    )


def test_a_text_stays_in_its_place_on_an_axis_whatever_is_shown() -> None:
    layers = ["2", "<b>", "2", "1"]
    content = replace(table({"m": [1.0, 2.0, 3.0, None]}), settings={"layer": layers})
    for shown in (None, [1], [2, 1]):
        figure = study_figures.scatter(content, axes("layer", "m"), (), shown)
        assert figure["layout"]["xaxis"]["categoryarray"] == ["2", "&lt;b&gt;", "1"]
        assert figure["data"][0]["x"] == [
            ["2", "&lt;b&gt;", "2"][place] for place in sorted(shown or range(3))
        ]


def test_a_perplexity_beyond_every_number_is_infinite_and_no_error() -> None:
    (trace,) = curve_figures.learning_curves({"x": training([1], [800.0])})["data"]
    assert trace["y"] == [math.inf]


def test_areas_of_points_grow_with_the_number() -> None:
    content = table({"a": [1, 2, 3], "b": [1, 1, 1], "c": [0, 50, 100]})
    (trace,) = study_figures.scatter(content, axes("a", "b", size="c"))["data"]
    areas = decoded(trace["marker"]["size"]) ** 2
    assert areas == pytest.approx([25, (25 + 324) / 2, 324])


def test_many_points_are_drawn_by_webgl() -> None:
    for count, kind in ((2000, "scatter"), (2001, "scattergl")):
        content = table({"a": list(range(count)), "b": [0] * count})
        assert study_figures.scatter(content, axes("a", "b"))["data"][0]["type"] == kind


def test_a_cell_of_the_map_is_the_mean_over_its_trials() -> None:
    content = table({"r": [1, 1, 2, 2, 2], "c": [5, 5, 5, 6, 6], "m": [1, 3, 10, 4, None]})
    (trace,) = study_figures.grid_map(content, "r", "c", "m")["data"]
    assert trace["y"] == ["1", "2"] and trace["x"] == ["5", "6"]
    assert np.array_equal(decoded(trace["z"]), np.array([[2, np.nan], [10, 4]]), equal_nan=True)
    assert decoded(trace["customdata"]).tolist() == [[2, 0], [1, 1]]


def test_a_setting_of_lists_has_its_texts_on_the_map() -> None:
    content = table({"r": [[0.1, 0.2], [0.1, 0.2], [0.3]], "c": [5, 5, 6], "m": [1, 3, 4]})
    (trace,) = study_figures.grid_map(content, "r", "c", "m")["data"]
    assert trace["y"] == ["[0.1, 0.2]", "[0.3]"] and decoded(trace["customdata"]).tolist() == [
        [2, 0],
        [0, 1],
    ]


def test_the_axes_of_the_map_are_the_same_when_its_trials_end() -> None:
    content = table({"r": [1, 2, 3, 4], "c": [5, 5, 6, 7], "m": [1, None, None, None]})
    ends = {**content.ends, "state": ["done", "running", "planned", "failed"]}
    (trace,) = study_figures.grid_map(replace(content, ends=ends), "r", "c", "m")["data"]
    assert trace["y"] == ["1", "2", "3"] and trace["x"] == ["5", "6"]
    assert np.array_equal(
        decoded(trace["z"]), [[1, np.nan], [np.nan, np.nan], [np.nan, np.nan]], equal_nan=True
    )


def test_a_curve_is_of_perplexities_and_marks_where_averaging_begins() -> None:
    epochs = training([1, 1, 1], [3.0, 2.0, 1.5], averaged_from=3, jump=0.5)
    (trace,) = curve_figures.learning_curves({"x": epochs})["data"]
    assert trace["x"] == [1, 2, 3]
    assert trace["y"] == pytest.approx([math.exp(3), math.exp(2), math.exp(1)])
    assert trace["marker"]["symbol"] == ["circle", "circle", "diamond"]
    assert curve_figures.trial_curve(epochs)["layout"]["yaxis"]["tickformat"] == "~g", (
        "whole numbers between decades"
    )
    assert curve_figures.trial_curve(epochs)["layout"]["shapes"][0]["x0"] == 2.5
    assert "shapes" not in curve_figures.trial_curve(epochs[:2])["layout"]


def test_twenty_curves_differ_in_colour_or_dash_and_long_ones_have_no_markers() -> None:
    epochs = training([1, 1], [3.0, 2.0], averaged_from=3, jump=0.5)
    traces = curve_figures.learning_curves({str(place): epochs for place in range(20)})["data"]
    assert len({(trace["line"]["color"], trace["line"]["dash"]) for trace in traces}) == 20
    assert {trace["mode"] for trace in curve_figures.trial_curve(epochs)["data"]} == {
        "lines+markers"
    }
    assert {trace["mode"] for trace in curve_figures.trial_curve(epochs * 60)["data"]} == {"lines"}
    assert {
        trace["mode"] for trace in curve_figures.learning_curves({"x": epochs * 60})["data"]
    } == {"lines"}


def test_a_long_curve_has_a_marker_where_averaging_begins_and_nowhere_else() -> None:
    epochs = training([1] * 150, [3.0] * 150, averaged_from=101, jump=0.5)
    curve, switch = curve_figures.learning_curves({"x": epochs})["data"]
    assert (curve["mode"], switch["mode"], switch["marker"]["symbol"]) == (
        "lines",
        "markers",
        "diamond",
    )
    assert switch["x"] == [101] and switch["y"] == [curve["y"][100]]
    assert switch["marker"]["color"] == curve["line"]["color"]
    assert switch["showlegend"] is False and switch["legendgroup"] == curve["legendgroup"]


def test_a_zoom_stays_where_the_same_axes_are_drawn_with_more_numbers() -> None:
    epochs, sigma = training([1, 1], [3.0, 2.0], averaged_from=3, jump=0.5), np.array([10.0, 1.0])

    def zoom(figure: Any) -> str:
        return str(figure["layout"]["uirevision"])

    curves = (
        curve_figures.learning_curves({"x": epochs[:1]}),
        curve_figures.learning_curves({"x": epochs}),
    )
    spectra = [curve_figures.spectra({"x": sigma}, linear=linear) for linear in (False, True)]
    assert zoom(curves[0]) == zoom(curves[1]) != ""
    assert len({zoom(curves[0]), *map(zoom, spectra)}) == 3


@pytest.mark.parametrize("length", [1, 300, 10_000])
def test_a_spectrum_keeps_its_ends_and_its_shape(length: int) -> None:
    sigma = np.geomspace(1e4, 1e-3, length)
    (trace,) = curve_figures.spectra({"x": sigma}, linear=False)["data"]
    index: Any = decoded(trace["x"]).astype(int)
    assert index[0] == 1 and index[-1] == length and len(index) <= 1000
    assert np.array_equal(decoded(trace["y"]), sigma[index - 1])


def test_a_tolerance_stands_where_its_axis_has_it() -> None:
    sigma = np.array([10.0, 1.0, 0.0])
    logarithmic = curve_figures.spectra({"x": sigma}, linear=False, tolerance=0.01)["layout"]
    assert logarithmic["shapes"][0]["y0"] == pytest.approx(0.01)
    assert logarithmic["annotations"][0]["y"] == pytest.approx(-2)
    assert (
        curve_figures.spectra({"x": sigma}, linear=True, tolerance=0.01)["layout"]["shapes"][0][
            "y0"
        ]
        == 0.01
    )


def test_parallel_coordinates_lose_no_trial_that_has_the_colour() -> None:
    content = table(
        {"a": [1, 2, 3, 4], "b": [4, None, 6, 8], "c": [7, 8, 9, None], "d": [0, 1, 0, 1]}
    )
    (trace,) = study_figures.parallel(content, ["a", "b", "d"], "c")["data"]
    assert [dimension["label"] for dimension in trace["dimensions"]] == ["a", "d"]
    assert [list(decoded(dimension["values"])) for dimension in trace["dimensions"]] == [
        [1, 2, 3],
        [0, 1, 0],
    ]
    assert list(decoded(trace["line"]["color"])) == [7, 8, 9]
    assert study_figures.parallel(content, ["b", "a"], "c")["data"] == []
