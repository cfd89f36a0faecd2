"""What a function of the study's own file makes of the results: its sentences, tables and
figures."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from orchestrator.report import formats
from orchestrator.report.columns import Column, Table
from orchestrator.report.figures import Drawing
from orchestrator.report.sections.section import Section
from trainables.errors import first_line


def custom_section(function: Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> Section:
    """What `function` returns of the done trials: a DataFrame, a Figure or a text, or a list of
    these.

    Where it fails, one sentence that names it and the error: the rest of the report does not depend
    on it."""
    done = frame[frame["state"] == "done"].reset_index(drop=True)
    if done.empty:
        empty = _empty_section(function)
        return replace(empty, findings=(f"{empty.heading}: no trial has a result yet.",))
    import matplotlib.pyplot as plt

    mpl.use("agg")
    try:
        # What pandas plots lands on pyplot's current axes, which must not be those of another
        # function.
        plt.close("all")
        return _section(function, done)
    except (Exception, SystemExit) as error:
        return failed_section(function, error)
    finally:
        plt.close("all")


def failed_section(function: Callable[..., Any], error: BaseException) -> Section:
    """One sentence: whatever a user's function raises, or its figure when it is drawn, is a fault
    in that function."""
    text = f"The analysis {_name(function)} of the study failed{_place(function, error)}: {type(error).__name__}"
    details = f": {first_line(error)}" if str(error).strip() else ""
    return replace(_empty_section(function), findings=(f"{text}{details}.",))


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _empty_section(function: Callable[..., Any]) -> Section:
    name = _name(function)
    kind = "analysis-" + re.sub(r"\W+", "-", name).strip("-")
    return Section(kind=kind, heading=formats.capital(name.replace("_", " ")))


def _section(function: Callable[[pd.DataFrame], Any], done: pd.DataFrame) -> Section:
    returned = function(done)
    empty = _empty_section(function)
    parts = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    for part in parts:
        if not isinstance(part, (pd.DataFrame, Figure, str)):
            raise TypeError(
                f"it returned a {type(part).__name__}; return a pandas DataFrame, a matplotlib "
                f"Figure, a text, or a "
                "list of these"
            )
    frames = [_with_index(part) for part in parts if isinstance(part, pd.DataFrame)]
    figures = [part for part in parts if isinstance(part, Figure)]
    file = empty.kind.replace("-", "_")
    return replace(
        empty,
        findings=tuple(part for part in parts if isinstance(part, str)),
        tables=tuple(
            _table(part, empty.heading, f"{file}_table_{i}.csv") for i, part in enumerate(frames, 1)
        ),
        method=" ".join((inspect.getdoc(function) or "").split()),
        drawings=tuple(
            Drawing(
                name=f"{file}_{i}",
                caption=figure.get_suptitle() or empty.heading,
                draw=partial(_same, figure),
            )
            for i, figure in enumerate(figures, 1)
        ),
    )


def _same(figure: Figure) -> Figure:
    return figure


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """With the index as columns, unless it only counts the rows; columns of several levels become
    one."""
    # Named by texts first: columns that are categories or intervals take no other name beside
    # theirs.
    frame = frame.set_axis([_text(name) for name in frame.columns], axis="columns")
    if not isinstance(frame.index, pd.RangeIndex) or frame.index.name is not None:
        frame = frame.reset_index(allow_duplicates=True)
    return frame.set_axis([_text(name) for name in frame.columns], axis="columns")


def _text(name: Any) -> str:
    return " ".join(map(str, name)).strip() if isinstance(name, tuple) else str(name)


def _table(frame: pd.DataFrame, caption: str, file: str) -> Table:
    """Return the table of a frame, whose columns may have equal names."""
    keys = {f"column {i}": str(name) for i, name in enumerate(frame.columns)}
    values = frame.astype(object).where(frame.notna(), None)
    return Table(
        caption=str(frame.attrs.get("caption", caption)),
        frame=values.set_axis(list(keys), axis="columns"),
        shown=[(key, Column(name)) for key, name in keys.items()],
        file=file,
        names=keys,
    )


def _place(function: Callable[..., Any], error: BaseException) -> str:
    """ " in line 12", of the file that the function is in, where it can be told."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file
    ]
    return f" in line {lines[-1]}" if lines else ""
