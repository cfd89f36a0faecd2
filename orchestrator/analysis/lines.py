"""Metrics against a config value, a line for each value of another, in panels by a third."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.statistics.samples import SampleSummary, summarise_sample
from search_spaces.analyses import Claim, Lines, Reach

if TYPE_CHECKING:
    import pandas as pd

MET_RULE = "met_rule"
"""A metric, 1 or 0, of fits that end by a rule of convergence or at a limit."""


@dataclass(frozen=True, kw_only=True)
class LinePoint:
    """The trials of one x on a line: a metric's mean over them, and the least and the greatest of their values."""

    x: float
    sample: SampleSummary
    least: float
    greatest: float

    @property
    def mean(self) -> float:
        """Over the trials; there is at least one."""
        assert self.sample.mean is not None
        return self.sample.mean


@dataclass(frozen=True, kw_only=True)
class Line:
    """One metric of one value of `by` in one panel, from left to right."""

    panel: Any
    """A config value; None where the request names no panel."""
    metric: str
    by: Any
    points: tuple[LinePoint, ...]


@dataclass(frozen=True, kw_only=True)
class Reached:
    """Where a line first gets as far as was asked, in one panel."""

    reach: Reach
    panel: Any
    by: Any
    x: float | None
    """None: nowhere."""


@dataclass(frozen=True, kw_only=True)
class ClaimChecked:
    """A claim in one panel: at which x it holds for the means, and at which even for every trial of both lines."""

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
    lines: tuple[Line, ...]
    """By panel, then metric, then `by`, each in the order of the plan."""
    reached: tuple[Reached, ...]
    claims: tuple[ClaimChecked, ...]
    limited: tuple[str, ...]
    """Names of done trials that stopped at a limit before their rule of convergence was met."""

    @property
    def panels(self) -> tuple[Any, ...]:
        """The panels' values."""
        return tuple(dict.fromkeys(line.panel for line in self.lines))

    @property
    def groups(self) -> tuple[Any, ...]:
        """The values of `by`."""
        return tuple(dict.fromkeys(line.by for line in self.lines))

    def find(self, panel: Any, metric: str, by: Any) -> Line | None:
        """The line, if the plan has it."""
        return next((x for x in self.lines if (x.panel, x.metric, x.by) == (panel, metric, by)), None)


def line_numbers(frame: pd.DataFrame, request: Lines) -> LineNumbers:
    """The lines that a study asks for, over the done trials; a line without a trial has no points."""
    columns = {request.x, request.by, *([request.panel] if request.panel else [])}
    records = frame.to_dict("records") if columns <= set(frame.columns) else []
    panels = list(dict.fromkeys(_panel(record, request) for record in records))
    groups = list(dict.fromkeys(record[request.by] for record in records))
    values = _values(records, request)
    lines = {
        key: Line(panel=key[0], metric=key[1], by=key[2], points=_points(values.get(key, {})))
        for key in product(panels, request.metrics, groups)
    }
    reached = tuple(
        Reached(reach=reach, panel=line.panel, by=line.by, x=_reached(line, reach))
        for reach in request.reaches
        for line in lines.values()
        if line.metric == reach.metric
    )
    checked = tuple(
        _check(lines[panel, claim.metric, claim.better], lines[panel, claim.metric, claim.than], claim)
        for claim in request.claims
        for panel in claim.panels or panels
        if {(panel, claim.metric, by) for by in (claim.better, claim.than)} <= set(lines)
    )
    return LineNumbers(
        request=request,
        lines=tuple(lines.values()),
        reached=reached,
        claims=tuple(claim for claim in checked if claim.places),
        limited=tuple(row["name"] for row in records if row["state"] == "done" and row.get(MET_RULE) == 0),
    )


def _panel(record: Mapping[Any, Any], request: Lines) -> Any:
    return record[request.panel] if request.panel else None


_Values = Mapping[tuple[Any, str, Any], Mapping[float, list[float]]]


def _values(records: list[dict[Any, Any]], request: Lines) -> _Values:
    """Panel, metric and line -> x -> the values of the done trials there."""
    values: dict[tuple[Any, str, Any], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        for metric in request.metrics if record["state"] == "done" else ():
            value = record.get(metric)
            if isinstance(value, (int, float)) and math.isfinite(value):
                by_x = values[_panel(record, request), metric, record[request.by]]
                by_x[float(record[request.x])].append(float(value))
    return values


def _points(by_x: Mapping[float, list[float]]) -> tuple[LinePoint, ...]:
    return tuple(
        LinePoint(x=x, sample=summarise_sample(values), least=min(values), greatest=max(values))
        for x, values in sorted(by_x.items())
    )


def _reached(line: Line, reach: Reach) -> float | None:
    """The least x from which on it is; the line may come back later, which the table shows."""
    sign = -1 if reach.at_most else 1
    return next((point.x for point in line.points if sign * point.mean >= sign * reach.value), None)


def _check(better: Line, than: Line, claim: Claim) -> ClaimChecked:
    sign = -1 if claim.lower_is_better else 1
    worse = {point.x: point for point in than.points}
    pairs = [
        (point, worse[point.x])
        for point in better.points
        if point.x in worse and (claim.x_up_to is None or point.x <= claim.x_up_to)
    ]
    return ClaimChecked(
        claim=claim,
        panel=better.panel,
        places=tuple(a.x for a, _ in pairs),
        holds=tuple(a.x for a, b in pairs if sign * a.mean > sign * b.mean),
        apart=tuple(a.x for a, b in pairs if _apart(a, b, sign)),
        apart_against=tuple(a.x for a, b in pairs if _apart(b, a, sign)),
        single=tuple(a.x for a, b in pairs if min(a.sample.n, b.sample.n) < 2),
    )


def _apart(better: LinePoint, worse: LinePoint, sign: int) -> bool:
    """Whether the worst trial of the one beats the best of the other; of single trials that says nothing."""
    if min(better.sample.n, worse.sample.n) < 2:
        return False
    worst, best = (better.least, worse.greatest) if sign > 0 else (better.greatest, worse.least)
    return sign * worst > sign * best
