"""Metrics against a config value, a line for each value of another, in panels by a third."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.statistics.samples import summarise_sample
from orchestrator.analysis.tidy_frames import rows, tidy
from orchestrator.analysis.values import values_of_done
from search_spaces.analyses import Lines

if TYPE_CHECKING:
    import pandas as pd

MET_RULE = "met_rule"
"""A metric, 1 or 0, of fits that end by a rule of convergence or at a limit."""


POINT = ("n", "mean", "sd", "least", "greatest")


@dataclass(frozen=True, kw_only=True)
class LineNumbers:
    """The answer to a Lines request; `panel` is None if the request names none."""

    request: Lines
    panels: tuple[Any, ...]
    groups: tuple[Any, ...]
    """The values of `by`."""
    points: pd.DataFrame
    """A row for each point of each line: panel, metric, group, x, and `POINT` over the trials
    there; lines in the order of the plan, x ascending."""
    references: pd.DataFrame
    """The group that is drawn as a level line: panel, metric, and `POINT`."""
    reached: pd.DataFrame
    """A row for each reach, panel and line with a point: reach (its index in the request), panel,
    group, x (the least at which the mean is there; None if nowhere), least and greatest (x of the
    line)."""
    claims: pd.DataFrame
    """A row for each claim and panel, x as texts: claim, panel, metric, better, than, asked (every
    x that both lines have and that the claim is about), holds (where the mean is better), apart
    (where the worst trial of the better line beats the best of the other), apart_against (where
    every trial says the contrary), single (where a line has one trial, which has no spread)."""
    limited: tuple[str, ...]
    """Names of done trials that stopped at a limit before their rule of convergence was met."""


def line_numbers(frame: pd.DataFrame, request: Lines) -> LineNumbers:
    """Return the lines that a study asks for, over the done trials."""
    columns = [*([request.panel] if request.panel else []), request.by, request.x]
    has_columns = set(columns) <= set(frame.columns)
    every = frame if has_columns else frame[:0].reindex(columns=frame.columns.union(columns))
    planned = _with_after(every, request).dropna(subset=columns)
    panels = tuple(dict.fromkeys(planned[request.panel])) if request.panel else (None,)
    groups = tuple(dict.fromkeys(planned[request.by]))
    points = _points(planned, request, panels, groups, columns)
    limited = (
        planned[(planned["state"] == "done") & (planned[MET_RULE] == 0)]
        if MET_RULE in planned
        else planned[:0]
    )
    return LineNumbers(
        request=request,
        panels=panels,
        groups=groups,
        points=points,
        references=tidy(_references(every, request, panels), ("panel", "metric", *POINT)),
        reached=tidy(_reached(points, request, panels)),
        claims=tidy(_claims(points, request, panels), ("claim",)),
        limited=tuple(limited["name"]),
    )


def _points(
    planned: pd.DataFrame,
    request: Lines,
    panels: Sequence[Any],
    groups: Sequence[Any],
    columns: Sequence[str],
) -> pd.DataFrame:
    values: dict[tuple[Any, str, Any], dict[float, list[float]]] = {
        key: {} for key in product(panels, request.metrics, groups)
    }
    for metric in request.metrics:
        for *panel, by, x, value in values_of_done(planned, metric, *columns):
            if math.isfinite(value):
                line = values[panel[0] if panel else None, metric, by]
                line.setdefault(float(x), []).append(value)
    return tidy(
        (
            {"panel": panel, "metric": metric, "group": group, "x": x} | point_of(of_x)
            for (panel, metric, group), line in values.items()
            for x, of_x in sorted(line.items())
        ),
        ("panel", "metric", "group", "x", *POINT),
    )


def point_of(values: Sequence[float]) -> dict[str, Any]:
    """Return `POINT` of at least one value."""
    sample = summarise_sample(values)
    numbers = (sample.n, sample.mean, sample.sd, min(values), max(values))
    return dict(zip(POINT, numbers, strict=True))


def line_of(points: pd.DataFrame, panel: Any, metric: str, group: Any) -> dict[float, Any]:
    """Return a line's points by x."""
    # None is not equal to itself in a frame.
    of_panel = points["panel"].isna() if panel is None else points["panel"] == panel
    chosen = of_panel & (points["metric"] == metric) & (points["group"] == group)
    return {row.x: row for row in rows(points[chosen])}


def _with_after(frame: pd.DataFrame, request: Lines) -> pd.DataFrame:
    """The frame, and a further row for each trial and setting of `request.after` that was
    measured."""
    import pandas as pd

    rows = [frame]
    for prefix, (by, x) in request.after.items():
        values: dict[str, Any] = {name: frame.get(prefix + name) for name in request.metrics}
        measured = frame.assign(**values | {request.by: by, request.x: x})
        rows.append(measured.dropna(subset=list(values), how="all"))
    return pd.concat(rows)


def _references(
    frame: pd.DataFrame, request: Lines, panels: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    has_group = request.reference and "group" in frame
    of_group = frame[frame["group"] == request.reference] if has_group else frame[:0]
    for panel, metric in product(panels, request.metrics):
        trials = of_group if panel is None else of_group[of_group[request.panel] == panel]
        values = [value for (value,) in values_of_done(trials, metric) if math.isfinite(value)]
        if values:
            yield {"panel": panel, "metric": metric} | point_of(values)


def _reached(
    points: pd.DataFrame, request: Lines, panels: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    """The least x of every line; a line may come back later, which the table shows."""
    for (index, reach), panel in product(enumerate(request.reaches), panels):
        sign = -1 if reach.at_most else 1
        for group in dict.fromkeys(points["group"]):
            line = line_of(points, panel, reach.metric, group)
            there = (x for x, one in line.items() if sign * one.mean >= sign * reach.value)
            if line:
                yield {
                    "reach": index,
                    "panel": panel,
                    "group": group,
                    "x": next(there, None),
                    "least": min(line),
                    "greatest": max(line),
                }


def _claims(
    points: pd.DataFrame, request: Lines, panels: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    for claim in request.claims:
        for panel in claim.panels or panels:
            sign = -1 if claim.lower_is_better else 1
            better, than = (
                line_of(points, panel, claim.metric, group) for group in (claim.better, claim.than)
            )
            pairs = {
                x: (better[x], than[x])
                for x in better
                if x in than and (claim.x_up_to is None or x <= claim.x_up_to)
            }
            if not pairs:
                continue
            found = {
                "asked": list(pairs),
                "holds": [x for x, (a, b) in pairs.items() if sign * a.mean > sign * b.mean],
                "apart": [x for x, (a, b) in pairs.items() if _is_apart(a, b, sign)],
                "apart_against": [x for x, (a, b) in pairs.items() if _is_apart(b, a, sign)],
                "single": [x for x, (a, b) in pairs.items() if min(a.n, b.n) < 2],
            }
            yield {
                "claim": claim.text,
                "panel": panel,
                "metric": claim.metric,
                "better": claim.better,
                "than": claim.than,
                **{name: " ".join(f"{x:g}" for x in xs) for name, xs in found.items()},
            }


def _is_apart(better: Any, worse: Any, sign: int) -> bool:
    """Whether the worst trial of the one beats the best of the other; of single trials that says
    nothing."""
    if min(better.n, worse.n) < 2:
        return False
    worst, best = (better.least, worse.greatest) if sign > 0 else (better.greatest, worse.least)
    return bool(sign * worst > sign * best)
