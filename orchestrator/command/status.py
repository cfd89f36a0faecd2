"""The command `status`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.command import options
from orchestrator.command.options import open_existing, print_out, print_records
from orchestrator.command.results import no_study, study_name
from orchestrator.words import one_line, short_id
from trainables.errors import DIVERGED, PROGRAM, UserError

if TYPE_CHECKING:
    from orchestrator.store import LostTrial, RunningTrial

STATES = ("done", "running", "planned", "diverged", "failed", "pruned")
COLUMNS = ("study", "scale", "corpus", "overrides", "trials", *STATES)
CAUSES_SHOWN = 20


def status(
    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="Only this study.")] = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    form: options.Format = "table",
    sizes: Annotated[
        bool, typer.Option("--sizes", help="Show the bytes of the trials' files instead.")
    ] = False,
) -> None:
    """Show the progress of each study.

    Also lists running trials, and failed and diverged trials with their causes.
    """
    from orchestrator.storage import storage_at
    from orchestrator.store import expire_dead_owners
    from orchestrator.sweep import file_sizes

    name = study and study_name(study)

    def is_shown(row: Any) -> bool:
        return name in (None, row.key.study)

    with open_existing(store, storage, check=False) as results_store:
        with suppress(UserError):  # a read-only store is shown unchanged
            expire_dead_owners(results_store)
        all_summaries = results_store.studies()
        summaries = list(filter(is_shown, all_summaries))
        running_trials = list(filter(is_shown, results_store.running()))
        lost_trials = list(filter(is_shown, results_store.lost()))
        if not summaries and name is not None:
            raise no_study(name, (summary.key for summary in all_summaries))
        if sizes:
            location = storage_at(storage)
            sizes_by_study = file_sizes(results_store, location, name, as_text=form == "table")
            columns = [*sizes_by_study[0]] if sizes_by_study else []
            print_records(sizes_by_study, columns, form, "sizes", studies=sizes_by_study)
            return
    records = [
        {
            **vars(s.key),
            "overrides": "" if s.key.overrides == "{}" else s.key.overrides,
            "trials": sum(s.counts.values()),
            **s.counts,
        }
        for s in summaries
    ]
    print_records(
        records,
        COLUMNS,
        form,
        "status",
        studies=_flat(summaries),
        running=_flat(running_trials),
        lost=_flat(lost_trials),
    )
    if form != "table":
        return
    if running_trials:
        print_out(
            f"\nTrials that run or are next on a worker. To stop one, type {PROGRAM} stop and the "
            f"start of its id:"
        )
        for line in dict.fromkeys(map(_running_line, running_trials)):
            print_out(line)
    if lost_trials:
        _print_lost(lost_trials)


def _flat(rows: Sequence[Any]) -> list[dict[str, Any]]:
    fields = [dict(vars(row)) for row in rows]
    return [{**vars(one.pop("key")), **one} for one in fields]


def _running_line(trial: RunningTrial) -> str:
    host = trial.owner.partition(":")[0]
    attempt = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    return f"{short_id(trial.trial_id)}  {one_line(trial.name)}  (run from {host}{attempt})"


def _print_lost(lost_trials: Sequence[LostTrial]) -> None:
    from orchestrator.store import by_cause, group_text

    has_failures = any(trial.state == "failed" for trial in lost_trials)
    hint = f" Run failures again with {PROGRAM} retry STUDY." if has_failures else ""
    print_out(f"\nFailed or diverged. {DIVERGED}{hint}")
    groups = by_cause(lost_trials)
    for group in groups[:CAUSES_SHOWN]:
        print_out(group_text(group))
    if (hidden_count := len(groups) - CAUSES_SHOWN) > 0:
        print_out(f"and {hidden_count:,} more: {PROGRAM} results STUDY prints all causes.")
