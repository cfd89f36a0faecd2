"""The first page: every study, what runs now and where, what failed and why."""

from __future__ import annotations

from typing import Any

from dash import Dash, Input, Output, dcc, html

from orchestrator.report import number
from orchestrator.store import COMPLETE, LOST, RunningTrial, StudySummary
from orchestrator.view import parts
from orchestrator.view.source import LOST_SHOWN, Overview, Source
from orchestrator.words import duration, one_line
from trainables.errors import PROGRAM, UserError
from trainables.trial_folder import perplexity

LONGEST_CAUSE = 300


def layout() -> Any:
    """The page; its content comes with the first tick."""
    return html.Div(
        [dcc.Interval(id="overview-tick", interval=parts.LIVE_MS), html.Div(id="overview")]
    )


def register(app: Dash, source: Source) -> None:
    """Have the page follow the store."""

    @app.callback(Output("overview", "children"), Input("overview-tick", "n_intervals"))
    def show(_: int | None) -> Any:
        try:
            return _content(source.overview())
        except UserError as error:
            return parts.trouble(error)


def _content(overview: Overview) -> parts.Children:
    running = [_running_row(trial) for trial in overview.running]
    # A trial of several studies runs once, and is lost once.
    running_count = len({trial.trial_id for trial in overview.running if trial.alive})
    lost = [
        [
            parts.trial_link(trial.trial_id, trial.name, trial.key),
            parts.study_link(trial.key),
            trial.state,
            one_line(trial.cause or "no cause recorded", most=LONGEST_CAUSE),
        ]
        for trial in overview.lost
    ]
    more = ", the last ones below" if overview.lost_count > LOST_SHOWN else ""
    return [
        html.H1("Studies"),
        _studies(overview),
        html.H2(f"Running now, or next on a worker: {running_count}", id="running"),
        parts.table(
            ["trial", "study", "epoch", "validation perplexity", "on", "run from"],
            running,
            empty="Nothing runs now.",
        ),
        html.H2(f"Without a result: {overview.lost_count}{more}", id="lost"),
        parts.table(
            ["trial", "study", "state", "cause"], lost, empty="No trial failed or diverged."
        ),
        *_retries(overview),
    ]


def _retries(overview: Overview) -> parts.Children:
    """What to type for the studies that have trials without a result; of those planned last
    first."""
    if not overview.retries:
        return []
    words = (
        "A line runs again what one study has without a result. Type the path of your own files "
        "and folders, which the store knows by name, and --seeds, --budget, --data-dir, --store "
        "and --storage if its run had them."
    )
    commands = "\n".join(reversed(overview.retries))
    return [html.P(words, className="soft"), html.Pre(commands, className="command")]


def _running_row(trial: RunningTrial) -> list[Any]:
    place = trial.place or "next on a worker"
    place += f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    return [
        parts.trial_link(trial.trial_id, trial.name, trial.key),
        parts.study_link(trial.key),
        f"{trial.epoch or 0}" + (f" of {trial.epoch_count}" if trial.epoch_count else ""),
        number(None if trial.valid_loss is None else perplexity(trial.valid_loss)),
        place
        if trial.alive
        else f"{place}: its command is gone, and the next run takes the trial over",
        parts.host_of(trial.owner),
    ]


def _studies(overview: Overview) -> Any:
    """Those planned last, for which a reader came, come first."""
    head = ["study", "", "done", "trials", "running", "stopped early", "without a result"]
    return parts.table(
        [*head, "time left"],
        [_study_row(summary, overview) for summary in reversed(overview.studies)],
        empty=f"No study is in this store yet: run one with {PROGRAM} gss_grid.",
    )


def _study_row(summary: StudySummary, overview: Overview) -> list[Any]:
    counts = summary.counts
    total, complete = sum(counts.values()), sum(counts[state] for state in COMPLETE)
    left = overview.seconds_left.get(summary.key)
    return [
        parts.study_link(summary.key),
        html.Progress(value=str(complete), max=str(max(total, 1))),
        counts["done"],
        total,
        counts["running"],
        counts["pruned"],
        sum(counts[state] for state in LOST),
        f"about {duration(left)}" if left is not None else "",
    ]
