"""Metrics over one setting, with lines by a second setting and panels by a third."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from orchestrator.analysis.statistics.samples import summarise_sample
from orchestrator.analysis.tidy_frames import rows, tidy, values_by_group, values_of_done
from orchestrator.words import is_number
from search_spaces.analyses import Lines

MET_RULE = "met_rule"
"""Metric of a fit: 1 if it converged, 0 if it stopped at a limit."""
KL_AT_RANK = "kl_at_rank_"
LINE = ["panel", "line", "x"]
POINT = ("n", "mean", "sd", "least", "greatest")
ByLine = dict[tuple[Any, str, Any], dict[float, Any]]
"""Maps the (panel, metric, group) of a line to its points by x."""


@dataclass(frozen=True, kw_only=True)
class LineNumbers:
    """Answer to Lines. The column `panel` is empty without panels."""

    request: Lines
    panels: tuple[Any, ...]
    groups: tuple[Any, ...]
    points: pd.DataFrame
    """One row per point. Lines are in plan order, and x ascends."""
    references: pd.DataFrame
    """Values of the reference group, one row per panel and metric."""
    reached: pd.DataFrame
    """One row per `Reach`, panel and line. `reach` is the index in `request.reaches`. `x` is the
    smallest x whose mean reaches the requested value; None without one."""
    claims: pd.DataFrame
    """One row per claim and panel. The last five columns list values of x, as text.

    - asked: values that the claim covers.
    - holds: the mean is better, as claimed.
    - apart: all trials of the better line beat all trials of the other.
    - apart_against: the reverse of `apart`.
    - single: a line has only one trial.
    """
    limited: tuple[str, ...]
    """Names of done trials whose fit stopped before it converged."""


def line_numbers(frame: pd.DataFrame, request: Lines) -> LineNumbers:
    """Return the lines over the done trials."""
    all_trials = frame.assign(
        panel=frame.get(request.panel) if request.panel else "",
        line=frame.get(request.by) if request.by else "",
        x=frame.get(request.x),
    )
    trials = _with_after(all_trials, request).dropna(subset=LINE)
    panels, groups = (tuple(dict.fromkeys(trials[name])) for name in ("panel", "line"))
    points = tidy(_points(trials, request, panels, groups), ("panel", "metric", "group", "x"))
    lines: ByLine = {}
    for point in rows(points):
        lines.setdefault((point.panel, point.metric, point.group), {})[point.x] = point
    convergence = values_of_done(trials, MET_RULE, "name")
    return LineNumbers(
        request=request,
        panels=panels,
        groups=groups,
        points=points,
        references=tidy(_references(all_trials, request, panels), ("panel", "metric", *POINT)),
        reached=tidy(_reaches(lines, request, panels, groups)),
        claims=tidy(_claims(lines, request, panels), ("claim",)),
        limited=tuple(convergence["name"][convergence["value"] == 0]),
    )


def _points(
    trials: pd.DataFrame, request: Lines, panels: Sequence[Any], groups: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    values = {
        metric: dict(iter(values_of_done(trials, metric, *LINE).groupby(LINE)["value"]))
        for metric in request.metrics
    }
    positions = list(dict.fromkeys(trials["x"]))
    if all(map(is_number, positions)):  # others stay in plan order
        positions = sorted(map(float, positions))
    keys = product(panels, request.metrics, groups, positions)
    for panel, metric, group, x in keys:
        if (panel, group, x) in values[metric]:
            key = {"panel": panel, "metric": metric, "group": group, "x": x}
            yield key | point_of(list(values[metric][panel, group, x]))


def point_of(values: Sequence[float]) -> dict[str, Any]:
    """Return n, mean, sd, smallest and largest of the values."""
    sample = summarise_sample(values)
    numbers = (sample.n, sample.mean, sample.sd, min(values), max(values))
    return dict(zip(POINT, numbers, strict=True))


def _with_after(frame: pd.DataFrame, request: Lines) -> pd.DataFrame:
    rows = [frame]
    for prefix, (by, x) in request.after.items():
        values: dict[str, Any] = {name: frame.get(prefix + name) for name in request.metrics}
        block = frame.assign(**values, line=by, x=x)
        rows.append(block.dropna(subset=list(values), how="all"))
    return pd.concat(rows)


def _references(
    frame: pd.DataFrame, request: Lines, panels: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    trials = frame[frame["group"] == request.reference] if request.reference else frame[:0]
    for panel, metric in product(panels, request.metrics):
        values = values_of_done(trials[trials["panel"] == panel], metric)["value"]
        if len(values):
            yield {"panel": panel, "metric": metric} | point_of(list(values))


def _reaches(
    lines: ByLine, request: Lines, panels: Sequence[Any], groups: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    for (index, reach), panel, group in product(enumerate(request.reaches), panels, groups):
        if line := lines.get((panel, reach.metric, group)):
            sign = -1 if reach.at_most else 1
            sizes = (x for x, point in line.items() if sign * point.mean >= sign * reach.value)
            yield {
                "reach": index,
                "panel": panel,
                "group": group,
                "x": next(sizes, None),
                "least": min(line),
                "greatest": max(line),
            }


def _claims(lines: ByLine, request: Lines, panels: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for claim in request.claims:
        for panel in claim.panels or panels:
            sign = -1 if claim.lower_is_better else 1
            better_line, worse_line = (
                lines.get((panel, claim.metric, group), {}) for group in (claim.better, claim.than)
            )
            pairs = {
                x: (better_line[x], worse_line[x])
                for x in better_line
                if x in worse_line and (claim.x_up_to is None or x <= claim.x_up_to)
            }
            if not pairs:
                continue
            sizes = {
                "asked": list(pairs),
                "holds": [x for x, (a, b) in pairs.items() if sign * a.mean > sign * b.mean],
                "apart": [x for x, (a, b) in pairs.items() if _is_separate(a, b, sign)],
                "apart_against": [x for x, (a, b) in pairs.items() if _is_separate(b, a, sign)],
                "single": [x for x, (a, b) in pairs.items() if min(a.n, b.n) < 2],
            }
            yield {
                "claim": claim.text,
                "panel": panel,
                "metric": claim.metric,
                "better": claim.better,
                "than": claim.than,
                **{name: " ".join(f"{x:g}" for x in xs) for name, xs in sizes.items()},
            }


def _is_separate(better: Any, worse: Any, sign: int) -> bool:
    if min(better.n, worse.n) < 2:
        return False
    worst, best = (better.least, worse.greatest) if sign > 0 else (better.greatest, worse.least)
    return bool(sign * worst > sign * best)


def kl_curves(frame: pd.DataFrame) -> pd.DataFrame | None:
    """Return each group's mean KL divergence (nats) for least-squares approximations of log P.

    A group has the ranks that all its trials measured. None if no trial measured any.
    """
    prefixed = [name for name in frame.columns if name.startswith(KL_AT_RANK)]
    metrics = {int(name.removeprefix(KL_AT_RANK)): name for name in prefixed}
    by_rank = {rank: values_by_group(frame, metrics[rank]) for rank in sorted(metrics)}
    curves = tidy(
        {"group": group, "rank": rank} | point_of(values[group])
        for group, all_values in by_rank.get(0, {}).items()
        for rank, values in by_rank.items()
        # A trial's curve ends at its KL rank. Beyond it, a mean would cover only the other trials.
        if all_values and len(values[group]) == len(all_values)
    )
    return None if curves.empty else curves
