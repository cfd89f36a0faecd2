"""The commands for sweeps that run elsewhere: `submit` and `stop`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.command import options
from orchestrator.command.options import console, named_study, store_url
from orchestrator.command.results import VariantFilter, study_name, typed_filter
from search_spaces.catalog import ALL, is_file
from trainables.errors import KEPT, PROGRAM, UserError

if TYPE_CHECKING:
    from orchestrator.store import Store, StudyKey

DASHBOARD = "http://127.0.0.1:8265"
PATHS = ("storage", "data_dir", "contexts", "benchmarks")
TRIAL_ID = re.compile(r"[0-9a-f]{4,64}")
"""The first digits of a trial's id, enough of them to be taken for one."""
SQLITE = "sqlite:///"


def submit(
    context: typer.Context,
    address: Annotated[str, typer.Option(help="The cluster's dashboard, http://HOST:8265.")] = DASHBOARD,
) -> None:
    """Hand a sweep over to a cluster and return: the arguments of `run`, which then runs on the cluster's head."""
    from orchestrator.store import hide_password

    if not address.startswith(("http://", "https://")):
        raise UserError(f"submit takes the address of a cluster's dashboard, http://HOST:8265, not {address!r}.")
    arguments = list(context.args)
    typed = _as_run_reads(arguments)
    _check(typed)
    from orchestrator.cluster import submit as hand_over

    study = typed["study"]
    job = hand_over(["run", *arguments, "--address", "auto"], address, Path(study).stem)
    place = " ".join(hide_password(f"--{name} {typed[name]}") for name in ("storage", "store") if typed[name])
    out = console()
    for line in (
        f"Submitted as {job}.",
        f"Follow it with: ray job logs {job} --follow --address {address}",
        f"See what runs, from anywhere that reaches the store, with: {PROGRAM} status {place}",
        f"Stop it with: {PROGRAM} stop {'' if study == ALL else shlex.quote(study) + ' '}{place}",
    ):
        out.print(line, soft_wrap=True)


def _as_run_reads(arguments: list[str]) -> dict[str, Any]:
    """The parameters of `run`, by name. Ends the command where it would not take them."""
    from typer.main import get_command

    from orchestrator.command.app import app

    group: Any = get_command(app)
    with group.commands["run"].make_context(f"{PROGRAM} submit", list(arguments)) as parsed:
        return dict(parsed.params)


def _check(typed: Mapping[str, Any]) -> None:
    """Raise UserError for what cannot be read from the cluster, or must not be shown by it."""
    from orchestrator.plan import scale_named
    from orchestrator.storage import is_url
    from orchestrator.store import has_secret
    from orchestrator.watch import check_places

    study, store = typed["study"], typed["store"]
    if typed["address"] is not None:
        raise UserError("submit takes one --address, that of the cluster's dashboard.")
    if store is not None and has_secret(store):
        raise UserError(
            "Ray shows a job's command line to everyone who may see the cluster, so submit takes no password in "
            "--store: leave it out, and put it into the file that PGPASSFILE names (~/.pgpass) on the cluster's head."
        )
    check_places(typed["log_to"] or ())
    paths = {f"--{name.replace('_', '-')}": typed[name] for name in PATHS}
    if is_file(study):
        paths["the study"] = study
    else:
        scale_named(typed["scale"])
        if study != ALL:
            named_study(study)
    if store is not None and ("://" not in store or store.startswith(SQLITE)):
        paths["--store"] = store.removeprefix(SQLITE)
    store_url(store, typed["storage"])
    for name, path in paths.items():
        if path is not None and not is_url(str(path)) and not Path(path).is_absolute():
            raise UserError(
                f"submit runs on the cluster, where {path} would be another place: give {name} as an absolute path, in "
                "a folder that the cluster's machines share."
            )


def stop(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[STUDY|TRIAL]", help="A study, or a trial by the start of its id (4 digits or more)."),
    ] = None,
    scale: Annotated[
        str | None, options.choice(*options.SCALES, help="Only this scale. [default: all that run]")
    ] = None,
    corpus: options.AnyCorpus = None,
    settings: options.AnySettings = None,
    model: options.AnyModel = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
) -> None:
    """Ask whoever runs it to stop a study (without one, all that run) or a trial; it goes on when run again."""
    from orchestrator.store import open_store
    from orchestrator.words import on_corpus

    variants = typed_filter(scale, corpus, settings, model)
    with open_store(store_url(store, storage), create=False) as opened:
        trial = _trial(opened, target) if target is not None and TRIAL_ID.fullmatch(target) else None
        if trial is not None and (scale or corpus or settings or model):
            raise UserError(
                f"A trial is named by its id alone, {target}: leave out --scale, --corpus, --model and --set"
            )
        if trial is not None:
            opened.ask_to_stop(trial[0])
            console().print(f"Asked to stop the trial {trial[1]} ({trial[0][:12]}); the others of its sweep go on.")
            return
        for key, trains in _stoppable(opened, target, variants).items():
            opened.ask_to_stop(key)
            effect = (
                f"{KEPT}, and the same command goes on"
                if trains
                else "no trial of it runs now, so this stops only a command that measures, or that is starting"
            )
            from orchestrator.plan import typed_variant

            changed = "".join(f", {typed}" for typed in typed_variant(key.overrides))
            variant = f"{key.study} at scale {key.scale}{on_corpus(key.corpus)}{changed}"
            console().print(f"Asked to stop {variant}; {effect}.", soft_wrap=True, markup=False)


def _trial(store: Store, start: str) -> tuple[str, str] | None:
    """Id and name of the running or planned trial whose id starts so; raises UserError where several do."""
    from orchestrator.store import OPEN

    fitting = {
        row.trial_id: row.name
        for summary in store.studies()
        for row in store.trials(summary.key)
        if row.trial_id.startswith(start) and row.state in OPEN
    }
    if len(fitting) > 1:
        raise UserError(f"{len(fitting)} trials have an id that starts with {start}: give more of its digits.")
    return next(iter(fitting.items()), None)


def _stoppable(store: Store, study: str | None, variants: VariantFilter) -> Mapping[StudyKey, bool]:
    """The variants that are meant, and whether trials of each run: those that do, or of a named study any there are.

    Raises UserError where there are none.
    """
    name = study and study_name(study)
    running = {summary.key: summary.counts["running"] > 0 for summary in store.studies()}
    fitting = {key: runs for key, runs in running.items() if name in (None, key.study) and variants.fits(key)}
    keys: Mapping[StudyKey, bool] = {key: runs for key, runs in fitting.items() if runs}
    if name and not keys:
        keys = fitting
    if not keys:
        which = ", ".join(dict.fromkeys(key.study for key, runs in running.items() if runs)) or "none"
        meant = f"the study or trial {study!r}{variants}" if study else f"a study{variants}"
        raise UserError(f"By this store {meant} does not run, so there is nothing to stop; running: {which}.")
    return keys
