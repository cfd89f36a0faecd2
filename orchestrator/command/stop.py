"""The command `stop`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import open_existing, print_out
from orchestrator.command.results import VariantFilter, study_name, typed_filter
from trainables.errors import KEPT, UserError

if TYPE_CHECKING:
    from orchestrator.store import Store, StudyKey

TRIAL_ID = re.compile(r"[0-9a-f]{4,64}")
"""The first digits of a trial's id, enough of them to be taken for one."""


def stop(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY|TRIAL]",
            help="A study, or a trial by the start of its id (4 digits or more).",
        ),
    ] = None,
    scale: Annotated[
        options.ScaleName | None, typer.Option(help="Only this scale. [default: all that run]")
    ] = None,
    corpus: options.AnyCorpus = None,
    settings: options.AnySettings = None,
    model: options.AnyModel = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
) -> None:
    """Ask whoever runs it to stop a study (without one, all that run) or a trial; it goes on when
    run again."""
    from orchestrator.words import on_corpus, short_id

    variants = typed_filter(scale, corpus, settings, model)
    with open_existing(store, storage, check=False) as opened:
        trial = (
            _trial(opened, target) if target is not None and TRIAL_ID.fullmatch(target) else None
        )
        if trial is not None and (scale or corpus or settings or model):
            raise UserError(
                f"A trial is named by its id alone, {target}: leave out --scale, --corpus, --model "
                f"and --set"
            )
        if trial is not None:
            opened.ask_to_stop(trial[0])
            print_out(f"Asked to stop the trial {trial[1]} ({short_id(trial[0])}); others go on.")
            return
        for key, trains in _stoppable(opened, target, variants).items():
            opened.ask_to_stop(key)
            effect = (
                f"{KEPT}, and the same command goes on"
                if trains
                else "no trial of it runs now, so this stops a command that measures or starts"
            )
            from orchestrator.variants import Variant

            changes = Variant.read(key.overrides)
            variant = f"{key.study} at scale {key.scale}{on_corpus(key.corpus)}{changes}"
            print_out(f"Asked to stop {variant}; {effect}.")


def _trial(store: Store, start: str) -> tuple[str, str] | None:
    """Id and name of the running or planned trial whose id starts so; raises UserError where
    several do."""
    from orchestrator.store import OPEN

    fitting = {
        row.trial_id: row.name
        for summary in store.studies()
        for row in store.trials(summary.key)
        if row.trial_id.startswith(start) and row.state in OPEN
    }
    if len(fitting) > 1:
        raise UserError(
            f"{len(fitting)} trials have an id that starts with {start}: give more of its digits."
        )
    return next(iter(fitting.items()), None)


def _stoppable(store: Store, study: str | None, variants: VariantFilter) -> Mapping[StudyKey, bool]:
    """The variants that are meant, and whether trials of each run: those that do, or of a named
    study any there are.

    Raises UserError where there are none.
    """
    name = study and study_name(study)
    running = {summary.key: summary.counts["running"] > 0 for summary in store.studies()}
    fitting = {
        key: runs
        for key, runs in running.items()
        if name in (None, key.study) and variants.fits(key)
    }
    keys: Mapping[StudyKey, bool] = {key: runs for key, runs in fitting.items() if runs}
    if name and not keys:
        keys = fitting
    if not keys:
        which = (
            ", ".join(dict.fromkeys(key.study for key, runs in running.items() if runs)) or "none"
        )
        meant = f"the study or trial {study!r}{variants}" if study else f"a study{variants}"
        raise UserError(
            f"By this store {meant} does not run, so there is nothing to stop; running: {which}."
        )
    return keys
