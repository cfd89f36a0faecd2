"""The command `status`: how far each study is, what runs, and why trials have no result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import check_choice, open_existing, print_out, print_records
from orchestrator.command.results import no_study, study_name
from orchestrator.words import one_line, short_id
from trainables.errors import PROGRAM, UserError

if TYPE_CHECKING:
    from orchestrator.report import TextTable
    from orchestrator.store import Store, StudyKey, TrialRow

STATES = ("done", "running", "planned", "diverged", "failed", "pruned")
COLUMNS = ("study", "scale", "corpus", "overrides", "trials", *STATES)
CAUSES_SHOWN, LONGEST_CAUSE = 20, 400
"""Trials, and characters of each cause."""


def status(
    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="Only this study.")] = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    form: options.Format = "table",
) -> None:
    """Show how far each study has come."""
    from orchestrator.store import LOST, expire_dead_owners

    check_choice(form)
    name = study and study_name(study)
    with open_existing(store, storage, check=False) as opened:
        with suppress(UserError):  # a store that can only be read is shown as it is
            expire_dead_owners(opened)
        every = opened.studies()
        summaries = [s for s in every if name in (None, s.key.study)]
        busy = [s.key for s in summaries if s.counts["running"]]
        running = [_running_line(row) for key in busy for row in opened.trials(key) if row.owner]
        lost_counts = {s.key: sum(s.counts[state] for state in LOST) for s in reversed(summaries)}
        troubled = {key: count for key, count in lost_counts.items() if count}
        lost = list(islice(_lost_trials(opened, troubled), CAUSES_SHOWN)) if form == "table" else []
    if not summaries and name is not None:
        raise no_study(name, (summary.key for summary in every))
    records = [
        {
            "study": s.key.study,
            "scale": s.key.scale,
            "corpus": s.key.corpus,
            "overrides": "" if s.key.overrides == "{}" else s.key.overrides,
            "trials": sum(s.counts.values()),
            **s.counts,
        }
        for s in summaries
    ]
    print_records(records, COLUMNS, form)
    if form == "table" and running:
        print_out(
            f"\nRunning, or next on a worker; to stop one, type {PROGRAM} stop and the start of "
            f"its id:"
        )
        for line in dict.fromkeys(running):
            print_out(line)
    if lost:
        _print_lost(lost, sum(troubled.values()))


def _running_line(trial: TrialRow) -> str:
    """A trial's id, name, and the machine of the command that runs it."""
    host = (trial.owner or "").partition(":")[0]
    attempt = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    return f"{short_id(trial.trial_id)}  {one_line(trial.name)}  (run from {host}{attempt})"


def _print_lost(lost: Sequence[tuple[StudyKey, TrialRow]], count: int) -> None:
    """The first of so many failed and diverged trials, with their causes."""
    from orchestrator.report import Fitting

    print_out(f"\nWithout a result, and why; {PROGRAM} retry STUDY runs these again:")
    print_out(Fitting(table=_lost_table(lost)))
    if count > len(lost):
        print_out(
            f"and {count - len(lost):,} more: {PROGRAM} results STUDY shows the causes of all."
        )


def _lost_trials(store: Store, troubled: Iterable[StudyKey]) -> Iterator[tuple[StudyKey, TrialRow]]:
    from orchestrator.store import LOST

    return ((key, row) for key in troubled for row in store.trials(key) if row.state in LOST)


def _lost_table(lost: Iterable[tuple[StudyKey, TrialRow]]) -> TextTable:
    """A failed or diverged trial a line, the studies that were planned last first."""
    from orchestrator.report import Cell, TextTable

    body = tuple(
        (
            Cell(one_line(row.name), kind="name"),
            Cell(short_id(row.trial_id)),
            Cell(row.state, kind="bad"),
            Cell(
                " ".join(
                    [
                        key.study,
                        key.scale,
                        key.corpus,
                        *([key.overrides] if key.overrides != "{}" else []),
                    ]
                )
            ),
            Cell(one_line(row.cause or "no cause recorded", most=LONGEST_CAUSE), kind="cause"),
        )
        for key, row in lost
    )
    return TextTable(caption="", head=("trial", "id", "state", "study", "cause"), body=body)
