from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from orchestrator.view import figures
from orchestrator.view.trials import StudyTrials
from tests.support.synthetic_results import training
from trainables.trial_folder import UserEpoch


def trials(columns: dict[str, list[Any]], **settings: list[Any]) -> StudyTrials:
    frame = pd.DataFrame({**settings, **columns})
    frame.index = [f"{index:064x}" for index in range(len(frame))]
    names = [f"{'<b>' * (index > 0)}t{index}" for index in range(len(frame))]
    frame = frame.assign(name=names, state="done", attempt=1, cause=None)
    read_s = pd.Series(0.0, index=frame.index)
    return StudyTrials(
        frame=frame, settings=[*settings], metrics=[*columns], read_s=read_s, versions={}
    )


def scatter(content: StudyTrials, *axes: str | None, **options: Any) -> Any:
    names = dict(zip(("x", "y", "colour", "size"), [*axes, None, None], strict=False))
    return figures.scatter(content, names, **options)


def test_point_needs_both_numbers() -> None:
    content = trials({"a": [1, 2, None, 4], "b": [1.5, None, 3, 0], "c": [7, 8, 9, None]})
    (trace,) = scatter(content, "a", "b", "c").data
    assert list(trace.x) == [1, 4] and list(trace.y) == [1.5, 0]
    assert trace.customdata[:, 0].tolist() == [content.frame.index[index][:12] for index in (0, 3)]
    assert list(trace.hovertext) == ["t0", "&lt;b&gt;t3"]


def test_equal_numbers_have_no_colorbar() -> None:
    figure = scatter(trials({"a": [1, 2, 3], "b": [1, 2, None], "c": [0.02, 0.02, 1e8]}), *"abc")
    assert figure.layout.coloraxis.colorbar.title.text is None


def test_texts_keep_colour_and_position() -> None:
    layers = ["2", "<b>", "2", "1", None]
    content = trials({"m": [1.0, 2.0, 3.0, None, 4.0]}, layer=layers)
    for chosen in (None, [1], [2, 1]):
        ids = None if chosen is None else [f"{index:064x}" for index in chosen]
        figure = scatter(content, "layer", "m", "layer", shown=ids, logarithmic=["y"])
        assert list(figure.layout.xaxis.categoryarray) == ["2", "&lt;b&gt;", "1"]
        assert figure.layout.yaxis.type == "log"
        drawn = {trace.name: list(trace.y) for trace in figure.data}
        expected = {"2": [1, 3], "&lt;b&gt;": [2]} if chosen is None else {"&lt;b&gt;": [2]}
        assert drawn == expected | ({"2": [3]} if chosen == [2, 1] else {})
    assert len({trace.marker.color for trace in scatter(content, "layer", "m", "layer").data}) == 2


def test_areas_grow_with_the_number() -> None:
    content = trials({"a": [1, 2, 3, 4], "b": [1, 1, 1, 1], "c": [0, 50, 100, None]})
    (trace,) = scatter(content, "a", "b", None, "c").data
    assert trace.marker.size / trace.marker.sizeref == pytest.approx([25, 174.5, 324, 25])


def test_curves_mark_averaging() -> None:
    epochs = training([1, 1, 1], [3.0, 2.0, 1.5], averaged_from=3, jump=0.5)
    curve, switch = figures.learning_curves({"<x>": epochs, "none": []}).data
    assert curve.name == "&lt;x&gt;" and list(curve.x) == [1, 2, 3]
    assert curve.y == pytest.approx([math.exp(3), math.exp(2), math.exp(1)])
    assert (switch.x, switch.y) == ((3,), pytest.approx([math.exp(1)]))
    alone = figures.learning_curves({"<x>": epochs}, related=True)
    assert alone.data[1].y == pytest.approx([math.exp(3), math.exp(2), math.exp(1.5)])
    assert alone.data[2].visible
    assert not figures.learning_curves({"x": epochs[:2]}).data[1].visible
    (endless, _) = figures.learning_curves({"x": training([1], [800.0])}).data
    assert list(endless.y) == [math.inf]
    assert not figures.learning_curves({"x": []}, related=True).data


def test_own_metrics_have_curves() -> None:
    points = [(0.7, 3.0, 0.6), (0.9, 0.1, 0.8)]
    epochs = [
        UserEpoch(epoch=i, seconds=1.0, accuracy=a, loss=b, train_accuracy=c)
        for i, (a, b, c) in enumerate(points)
    ]
    assert figures.curve_metrics({"a": epochs}) == ["accuracy", "loss", "train_accuracy"]
    first = figures.learning_curves({"a": epochs})
    assert list(first.data[0].y) == [0.7, 0.9] and first.layout.yaxis.type != "log"
    loss = figures.learning_curves({"a": epochs}, "loss")
    assert list(loss.data[0].y) == [3.0, 0.1] and loss.layout.yaxis.type == "log"
    related = figures.learning_curves({"a": epochs}, related=True)
    assert [line.name for line in related.data[:2]] == ["accuracy", "train accuracy"]


def test_twenty_curves_differ() -> None:
    epochs = training([1, 1], [3.0, 2.0])
    drawn = figures.learning_curves({str(index): epochs for index in range(20)}).data[:20]
    assert len({(trace.line.color, trace.line.dash) for trace in drawn}) == 20
    for count, mode in ((50, "lines+markers"), (60, "lines")):
        epochs = training([1] * 2 * count, [3.0] * 2 * count)
        assert figures.learning_curves({"x": epochs}).data[0].mode == mode


def test_spectrum_values_match_indices() -> None:
    sigma = np.geomspace(1e4, 1e-3, 10_000)
    (trace,) = figures.spectra({"x": sigma, "none": None}).data
    index = np.asarray(trace.x)
    assert index[0] == 1 and index[-1] == 10_000 and len(index) < 1000
    assert np.array_equal(trace.y, sigma[index - 1])


def test_tolerance_crosses_the_spectrum() -> None:
    figure = figures.spectra({"x": np.array([10.0, 1.0, 0.0])}, tolerance=0.01)
    assert figure.layout.yaxis.type == "log" and figure.layout.shapes[0].y0 == 0.01
