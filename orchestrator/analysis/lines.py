"""Metrics against a config value, a line for each value of another, in panels by a third."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.statistics.samples import summarise_sample
from orchestrator.analysis.values import values_of_done
from search_spaces.analyses import Claim, Lines, Reach

if TYPE_CHECKING:
    import pandas as pd

MET_RULE = "met_rule"
"""A metric, 1 or 0, of fits that end by a rule of convergence or at a limit."""


@dataclass(frozen=True, kw_only=True)
class LinePoint:
    """A metric over the trials of one x on a line."""

    n: int
    """Trials, at least one."""
    mean: float
    sd: float | None
    least: float
    greatest: float


Line = Mapping[float, LinePoint]
"""From left to right: x -> the trials there."""


@dataclass(frozen=True, kw_only=True)
class Reached:
    """Where the lines of one panel first get as far as was asked."""

    reach: Reach
    panel: Any
    x: Mapping[Any, float | None]
    """Of each value of `by` with a trial in the panel the least x at which the mean is there; None:
    nowhere."""


@dataclass(frozen=True, kw_only=True)
class ClaimChecked:
    """A claim in one panel: at which x it holds for the means, and at which even for every trial of
    both lines."""

    claim: Claim
    panel: Any
    places: tuple[float, ...]
    """Every x that both lines have and that the claim is about."""
    holds: tuple[float, ...]
    """Where the mean is better."""
    apart: tuple[float, ...]
    """Of these, where the worst trial of the better line beats the best of the other."""
    apart_against: tuple[float, ...]
    """Where every trial says the contrary."""
    single: tuple[float, ...]
    """Where a line has one trial only, which has no spread."""


@dataclass(frozen=True, kw_only=True)
class LineNumbers:
    """The answer to a Lines request."""

    request: Lines
    panels: tuple[Any, ...]
    """The panels' values; one None where the request names no panel."""
    groups: tuple[Any, ...]
    """The values of `by`."""
    lines: Mapping[tuple[Any, str, Any], Line]
    """By panel, metric and value of `by`, each in the order of the plan."""
    references: Mapping[tuple[Any, str], LinePoint]
    """By panel and metric, the group that is drawn as a level line; none where it has no result."""
    reached: tuple[Reached, ...]
    claims: tuple[ClaimChecked, ...]
    limited: tuple[str, ...]
    """Names of done trials that stopped at a limit before their rule of convergence was met."""


def line_numbers(frame: pd.DataFrame, request: Lines) -> LineNumbers:
    """The lines that a study asks for, over the done trials; a line without a trial has no
    points."""
    columns = [*([request.panel] if request.panel else []), request.by, request.x]
    every = (
        frame
        if set(columns) <= set(frame.columns)
        else frame[:0].reindex(columns=frame.columns.union(columns))
    )
    planned = _with_after(every, request).dropna(subset=columns)
    panels = tuple(dict.fromkeys(planned[request.panel])) if request.panel else (None,)
    groups = tuple(dict.fromkeys(planned[request.by]))
    values: dict[tuple[Any, str, Any], dict[float, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for metric in request.metrics:
        for *panel, by, x, value in values_of_done(planned, metric, *columns):
            if math.isfinite(value):
                values[panel[0] if panel else None, metric, by][float(x)].append(value)
    lines = {key: _line(values[key]) for key in product(panels, request.metrics, groups)}
    claims = [
        _check(
            claim,
            panel,
            lines[panel, claim.metric, claim.better],
            lines[panel, claim.metric, claim.than],
        )
        for claim in request.claims
        for panel in claim.panels or panels
        if {(panel, claim.metric, by) for by in (claim.better, claim.than)} <= set(lines)
    ]
    limited = (
        planned[(planned["state"] == "done") & (planned[MET_RULE] == 0)]
        if MET_RULE in planned
        else planned[:0]
    )
    return LineNumbers(
        request=request,
        panels=panels,
        groups=groups,
        lines=lines,
        references=_references(every, request, panels),
        reached=tuple(
            _reached(
                reach,
                panel,
                {by: line for by in groups if (line := lines[panel, reach.metric, by])},
            )
            for reach in request.reaches
            if reach.metric in request.metrics
            for panel in panels
        ),
        claims=tuple(claim for claim in claims if claim.places),
        limited=tuple(limited["name"]),
    )


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
) -> dict[tuple[Any, str], LinePoint]:
    of_group = (
        frame[frame["group"] == request.reference]
        if request.reference and "group" in frame
        else frame[:0]
    )
    references: dict[tuple[Any, str], LinePoint] = {}
    for panel, metric in product(panels, request.metrics):
        trials = of_group if panel is None else of_group[of_group[request.panel] == panel]
        values = [value for (value,) in values_of_done(trials, metric) if math.isfinite(value)]
        references |= {(panel, metric): line_point(values)} if values else {}
    return references


def _line(by_x: Mapping[float, list[float]]) -> Line:
    return {x: line_point(values) for x, values in sorted(by_x.items())}


def line_point(values: Sequence[float]) -> LinePoint:
    """Of these values, at least one."""
    sample = summarise_sample(values)
    assert sample.mean is not None
    return LinePoint(
        n=sample.n, mean=sample.mean, sd=sample.sd, least=min(values), greatest=max(values)
    )


def _reached(reach: Reach, panel: Any, lines: Mapping[Any, Line]) -> Reached:
    """The least x of every line; a line may come back later, which the table shows."""
    sign = -1 if reach.at_most else 1
    x = {
        by: next((x for x, point in line.items() if sign * point.mean >= sign * reach.value), None)
        for by, line in lines.items()
    }
    return Reached(reach=reach, panel=panel, x=x)


def _check(claim: Claim, panel: Any, better: Line, than: Line) -> ClaimChecked:
    sign = -1 if claim.lower_is_better else 1
    places = [x for x in better if x in than and (claim.x_up_to is None or x <= claim.x_up_to)]
    return ClaimChecked(
        claim=claim,
        panel=panel,
        places=tuple(places),
        holds=tuple(x for x in places if sign * better[x].mean > sign * than[x].mean),
        apart=tuple(x for x in places if _apart(better[x], than[x], sign)),
        apart_against=tuple(x for x in places if _apart(than[x], better[x], sign)),
        single=tuple(x for x in places if min(better[x].n, than[x].n) < 2),
    )


def _apart(better: LinePoint, worse: LinePoint, sign: int) -> bool:
    """Whether the worst trial of the one beats the best of the other; of single trials that says
    nothing."""
    if min(better.n, worse.n) < 2:
        return False
    worst, best = (better.least, worse.greatest) if sign > 0 else (better.greatest, worse.least)
    return sign * worst > sign * best
