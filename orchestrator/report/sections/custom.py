"""Section of a function in the study's own file."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from orchestrator.report import formats
from orchestrator.report.columns import Table, whole_table
from orchestrator.report.figures import Drawing
from orchestrator.report.findings import describe
from orchestrator.report.sections.section import NOTHING, Section
from trainables.errors import first_line


@dataclass(frozen=True, kw_only=True)
class OwnFigure(Drawing):
    """A figure that a user's function has drawn."""

    figure: Figure

    def draw(self) -> Figure:
        """Return the figure."""
        return self.figure


def custom_section(function: Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> Section:
    """Return a section with what the user's `function` returns for the done trials.

    It may return a DataFrame, a Figure, a text, or a list of these. If it fails, one sentence names
    the function and the error; the rest of the report is unaffected.
    """
    done = frame[frame["state"] == "done"].reset_index(drop=True)
    if done.empty:
        return NOTHING
    import matplotlib.pyplot as plt

    mpl.use("agg")
    try:
        # pandas plots on pyplot's current axes, which must not be those of another function.
        plt.close("all")
        return _filled(function, function(done))
    except (Exception, SystemExit) as error:
        return failed_section(function, error)
    finally:
        plt.close("all")


def failed_section(function: Callable[..., Any], error: BaseException) -> Section:
    """Return a section with a sentence on the error of a user's function or of its figure."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    line = f" in line {lines[-1]}" if lines else ""
    details = f": {first_line(error)}" if str(error).strip() else ""
    words = (
        f"The analysis {_name(function)} of the study failed{line}: "
        f"{type(error).__name__}{details}."
    )
    return replace(_empty_section(function), findings=(describe("text", text=words),))


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _empty_section(function: Callable[..., Any]) -> Section:
    name = _name(function)
    kind = "analysis-" + re.sub(r"\W+", "-", name).strip("-")
    return Section(kind=kind, heading=formats.capital(name.replace("_", " ")))


def _filled(function: Callable[..., Any], returned: Any) -> Section:
    parts = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    for part in parts:
        if not isinstance(part, (pd.DataFrame, Figure, str)):
            raise TypeError(
                f"it returned a {type(part).__name__}; return a pandas DataFrame, a matplotlib "
                "Figure, a text, or a list of these"
            )
    tables = [part for part in parts if isinstance(part, pd.DataFrame)]
    figures = [part for part in parts if isinstance(part, Figure)]
    empty = _empty_section(function)
    file = empty.kind.replace("-", "_")
    return replace(
        empty,
        findings=tuple(describe("text", text=part) for part in parts if isinstance(part, str)),
        tables=tuple(
            _table(part, empty.heading, f"{file}_table_{i}.csv") for i, part in enumerate(tables, 1)
        ),
        method=" ".join((inspect.getdoc(function) or "").split()),
        drawings=tuple(
            OwnFigure(
                name=f"{file}_{i}", caption=figure.get_suptitle() or empty.heading, figure=figure
            )
            for i, figure in enumerate(figures, 1)
        ),
    )


def _table(frame: pd.DataFrame, caption: str, file: str) -> Table:
    # Name columns by texts first: categories and intervals accept no other name among them, and
    # columns of several levels become one.
    names = [name if isinstance(name, tuple) else (name,) for name in frame]
    table = frame.set_axis([" ".join(map(str, name)).strip() for name in names], axis="columns")
    if not isinstance(table.index, pd.RangeIndex) or table.index.name is not None:
        table = table.reset_index(allow_duplicates=True)
    values = table.astype(object).where(table.notna(), None)
    return whole_table(values, str(frame.attrs.get("caption", caption)), file)
