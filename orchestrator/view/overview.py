"""The first page: studies, running trials, and trials without a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import Dash, Input, Output, dcc, html

from orchestrator.report import cell, title
from orchestrator.store import COMPLETE, LOST, LostTrial, RunningTrial, StudySummary
from orchestrator.view import parts
from orchestrator.view.source import Overview, Source
from orchestrator.words import duration, one_line
from trainables.errors import DIVERGED, PROGRAM

LONGEST_CAUSE, LOST_SHOWN = 300, 50
HINTS = {
    "diverged": DIVERGED,
    "failed": "Each command runs one study's failed trials again. Give the path of your own files "
    "and folders, because the store has only their names. Repeat --seeds, --budget, --data-dir, "
    "--store and --storage if the run had them.",
}


def layout(source: Source) -> Any:
    """Return the page. Raises UserError if the store cannot be read."""
    return html.Div(
        [
            dcc.Interval(id="overview-tick", interval=parts.LIVE_MS),
            html.Div(content(source.overview()), id="overview"),
        ]
    )


def register(app: Dash, source: Source) -> None:
    """Register the page's callbacks."""

    @app.callback(Output("overview", "children"), Input("overview-tick", "n_intervals"))
    def show(_: int | None) -> Any:
        return content(source.overview())


def content(overview: Overview) -> parts.Children:
    """Return the page's content, with the latest planned studies first."""
    # Count a trial of several studies once.
    running_count = len({trial.trial_id for trial in overview.running if trial.alive})
    lost_count = len({trial.trial_id for trial in overview.lost})
    suffix = ", the latest below" if lost_count > LOST_SHOWN else ""
    studies = overview.studies[::-1]
    return [
        html.H1("Studies"),
        progress(studies, overview),
        html.H2(f"Running now or next on a worker: {running_count}", id="running"),
        parts.table(
            ["trial", "study", "epoch", "metric", "worker", "driver"],
            [_running_row(trial) for trial in overview.running],
            empty="No trial is running.",
        ),
        html.H2(f"Without a result: {lost_count}{suffix}", id="lost"),
        parts.table(
            ["trial", "study", "state", "cause"],
            [_lost_row(trial) for trial in overview.lost[:LOST_SHOWN]],
            empty="No trial failed or diverged.",
        ),
        html.P(
            " ".join(HINTS[state] for state in sorted({trial.state for trial in overview.lost})),
            className="soft",
        ),
        *([html.Pre("\n".join(overview.retries), className="command")] if overview.retries else []),
    ]


def progress(studies: Sequence[StudySummary], overview: Overview) -> Any:
    """Return a table of the studies' progress."""
    return parts.table(
        [
            "study",
            "",
            "done",
            "trials",
            "running",
            "stopped early",
            "without a result",
            "time left",
        ],
        [_study_row(study, overview.seconds_left.get(study.key)) for study in studies],
        empty=f"This store has no study yet. Run one with {PROGRAM} gss_grid.",
    )


def _study_row(summary: StudySummary, seconds_left: float | None) -> list[Any]:
    counts = summary.counts
    total, complete_count = sum(counts.values()), sum(counts[state] for state in COMPLETE)
    return [
        parts.study_link(summary.key),
        html.Progress(value=str(complete_count), max=str(max(total, 1))),
        counts["done"],
        total,
        counts["running"],
        counts["pruned"],
        sum(counts[state] for state in LOST),
        "" if seconds_left is None else f"about {duration(seconds_left)}",
    ]


def _running_row(trial: RunningTrial) -> list[Any]:
    metric, worker = list(trial.metrics.items())[:1], trial.host or "next on a worker"
    worker += f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    worker += "" if trial.alive else ": its command has ended; the next run resumes the trial"
    return [
        parts.trial_link(trial.trial_id, trial.name, trial.key),
        parts.study_link(trial.key),
        f"{trial.epoch or 0}" + (f" of {trial.epoch_count}" if trial.epoch_count else ""),
        "".join(f"{title(name)} {cell(name, value)}" for name, value in metric),
        worker,
        parts.host_of(trial.owner),
    ]


def _lost_row(trial: LostTrial) -> list[Any]:
    return [
        parts.trial_link(trial.trial_id, trial.name, trial.key),
        parts.study_link(trial.key),
        trial.state,
        one_line(trial.cause or "no cause recorded", most=LONGEST_CAUSE),
    ]
