"""The commands that list what there is: `studies`, `status` and `results`."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import console, named_study, store_url
from orchestrator.command.records import check_format, print_records
from orchestrator.command.variants import choose_variant, study_name, typed_filter
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.store import TrialRow


def studies(form: options.Format = "table") -> None:
    """List the studies, what each reproduces and how many trials it has at paper scale."""
    from orchestrator.plan import make_plan, scale_named
    from search_spaces.catalog import NAMES

    records = []
    for name in NAMES:
        study = named_study(name)
        counts = [f"{make_plan(study, scale_named('paper'), corpus).total} on {corpus}" for corpus in study.corpora]
        records.append({"study": name, "trials": ", ".join(counts), "question": study.question, "source": study.source})
    headings = {"study": "study", "trials": "trials at paper scale", "question": "question", "source": "source"}
    print_records(records, headings, form)


def status(
    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="Only this study.")] = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    form: options.Format = "table",
) -> None:
    """Show how far each study has come."""
    from orchestrator.store import expire_dead_owners, open_store

    check_format(form)
    name = study and study_name(study)
    with open_store(store_url(store, storage), create=False) as opened:
        with suppress(UserError):  # a store that can only be read is shown as it is
            expire_dead_owners(opened)
        every = opened.studies()
        summaries = [s for s in every if name in (None, s.key.study)]
        busy = [s.key for s in summaries if s.counts["running"]]
        running = [_running_line(row) for key in busy for row in opened.trials(key) if row.owner]
    if not summaries and name is not None:
        names = ", ".join(dict.fromkeys(s.key.study for s in every)) or "none"
        raise UserError(f"the store has no study {name!r}; it has {names}: choose one of these, or run it first")
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
    keys = ("study", "scale", "corpus", "overrides", "trials")
    states = ("done", "running", "planned", "diverged", "failed", "pruned")
    print_records(records, {key: key for key in (*keys, *states)}, form)
    if form == "table" and running:
        shown = console()
        shown.print("\nRunning, or next on a worker; to stop one, type python sweep.py stop and the start of its id:")
        for line in dict.fromkeys(running):
            shown.print(line, soft_wrap=True)


def _running_line(trial: TrialRow) -> str:
    """A trial's id, name, and the machine of the command that runs it."""
    host = (trial.owner or "").partition(":")[0]
    attempt = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    return f"{trial.trial_id[:12]}  {trial.name}  (run from {host}{attempt})"


def results(
    study: options.OneStudyArgument,
    scale: options.AnyScale = None,
    corpus: options.AnyCorpus = None,
    settings: options.AnySettings = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    form: Annotated[str, typer.Option("--format", help="table, csv, json or parquet.")] = "table",
) -> None:
    """Print all trials of a study with their configs and metrics."""
    from orchestrator.analysis import flatten
    from orchestrator.report import FORMATS, write_parquet, write_results
    from orchestrator.store import open_store

    variants, url = typed_filter(scale, corpus, settings), store_url(store, storage)
    check_format(form, FORMATS)
    if form == "parquet" and sys.stdout.isatty():
        raise UserError("parquet is a binary format: send it to a file, for example with > results.parquet")
    with open_store(url, create=False) as opened:
        trials = flatten(opened.results(choose_variant(opened, study_name(study), variants)))
    if form == "parquet":
        write_parquet(trials, sys.stdout.buffer)
    else:
        write_results(trials, form, sys.stdout, _group_metrics(study))  # type: ignore[arg-type]


def _group_metrics(argument: str) -> list[str]:
    """See `group_metrics`; of a study whose file was not named, none."""
    from orchestrator.report import group_metrics
    from search_spaces.catalog import NAMES, is_file

    return group_metrics(named_study(argument)) if argument in NAMES or is_file(argument) else []
