from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from orchestrator.analysis import tidy
from orchestrator.report.figures import draw, new_panels
from orchestrator.report.heat_map import HeatMap
from orchestrator.report.hover import name_marks
from orchestrator.report.sections.custom import OwnFigure

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ['a <b> & "c"', "d\ne", "f"]


def drawn(figure: Figure, out: Path) -> ElementTree.Element:
    return ElementTree.fromstring(
        draw(OwnFigure(name="f", caption="", figure=figure), out)["f.svg"]
    )


def named(svg: ElementTree.Element) -> dict[str, list[tuple[float, float]]]:
    marks = {}
    for element in svg.iter():
        if (title := element.find(f"{SVG}title")) is not None:
            circle = f"{element.get('cx')} {element.get('cy')}"
            numbers = re.findall(r"[\d.]+ [\d.]+", element.get("d", circle))
            marks[title.text or ""] = [(float(x), float(y)) for x, y in map(str.split, numbers)]
    return marks


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_name_is_on_its_point(scale: str, tmp_path: Path) -> None:
    figure, [axes] = new_panels(1, 1, width_in=4, row_in=2.9)
    points = np.array([(1.0, 2.0), (3.5, 40.0), (80.0, 7.0)])
    axes.scatter(*points.T)
    axes.set(xscale=scale, yscale=scale)
    name_marks(axes, points, NAMES)
    svg = drawn(figure, tmp_path)
    markers = svg.find(f".//{SVG}g[@id='PathCollection_1']")
    assert markers is not None
    positions = [
        (float(use.get("x", "")), float(use.get("y", ""))) for use in markers.iter(f"{SVG}use")
    ]
    assert list(named(svg)) == NAMES
    np.testing.assert_allclose([mark[0] for mark in named(svg).values()], positions, atol=0.06)


def test_outside_points_have_no_name(tmp_path: Path) -> None:
    figure, [axes] = new_panels(1, 1, width_in=4, row_in=2.9)
    axes.set(xlim=(1, 10), ylim=(1, 10), xscale="log")
    curve = [(0.5, 2), (2, 2), (4, 3), (40, 3)]
    name_marks(
        axes, [(0.0, 2.0), (2.0, float("nan")), (5.0, 5.0), curve], ["zero", "nan", "seen", "curve"]
    )
    assert {name: len(points) for name, points in named(drawn(figure, tmp_path)).items()} == {
        "seen": 1,
        "curve": 2,
    }


def test_whole_cell_has_its_name(tmp_path: Path) -> None:
    cells = [("p", "x", 1), ("p", "y", 2), ("q", "x", 3), ("q", "y", None)]
    heat_map = HeatMap(
        name="f",
        caption="",
        title="values",
        cells=tidy(
            {
                "row": row,
                "column": column,
                "value": value,
                "text": str(value or ""),
            }
            for row, column, value in cells
        ),
    )
    svg = ElementTree.fromstring(draw(heat_map, tmp_path)["f.svg"])
    marks = named(svg)
    assert list(marks) == ["p, x: 1", "p, y: 2", "q, x: 3", "q, y: none"]
    (left, bottom), (right, _), (_, top), _, _ = marks["p, x: 1"]
    assert marks["q, y: none"][0] == (right, top) and right - left > 100 and bottom - top > 50
