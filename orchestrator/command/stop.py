"""The command `stop`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import open_existing, print_out
from orchestrator.command.results import VariantFilter, study_name, typed_filter
from search_spaces.catalog import ALL
from trainables.errors import KEPT, UserError

if TYPE_CHECKING:
    from orchestrator.store import Store, StudyKey

TRIAL_ID = re.compile(r"[0-9a-f]{4,64}")


def stop(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY|TRIAL|all",
            help="A study, the first 4 or more digits of a trial's id, or all studies.",
        ),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Only this scale. [default: all running]")
    ] = None,
    corpus: options.AnyCorpus = None,
    settings: options.AnySettings = None,
    model: options.AnyModel = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
) -> None:
    """Stop a running study or trial.

    Run its command again to resume.
    """
    from orchestrator.variants import Variant
    from orchestrator.words import on_corpus, short_id

    variants = typed_filter(scale, corpus, settings, model)
    with open_existing(store, storage, check=False) as results_store:
        running_trials = {trial.trial_id: trial for trial in results_store.running()}
        if trial_id := one_trial(target, running_trials):
            trial = running_trials[trial_id]
            if not trial.has_driver:
                raise UserError(f"stop: {trial.owner} runs it. Use scancel, or end that process.")
            results_store.ask_to_stop(trial_id)
            print_out(
                f"Asked to stop trial {trial.name} ({short_id(trial_id)}); other trials continue."
            )
            return
        running_keys = [
            summary.key for summary in results_store.studies() if summary.counts["running"]
        ]
        for key in _stoppable(results_store, running_keys, target, variants):
            results_store.ask_to_stop(key)
            effect = (
                f"{KEPT}; run its command again to resume"
                if key in running_keys
                else "it has no running trial; only a command that starts or measures will stop"
            )
            variant = f"{on_corpus(key.corpus)}{Variant.read(key.overrides)}"
            print_out(f"Asked to stop {key.study} at scale {key.scale}{variant}; {effect}.")
        workers = {trial.owner for trial in running_trials.values() if not trial.has_driver}
        if workers:
            print_out(
                f"These continue: {', '.join(sorted(workers))}. Use scancel, or end the process."
            )


def one_trial(start: str | None, trial_ids: Iterable[str]) -> str | None:
    """Return the id that starts with `start`, or None. Raises UserError if there are several."""
    if start is None or not TRIAL_ID.fullmatch(start):
        return None
    matches = {trial_id for trial_id in trial_ids if trial_id.startswith(start)}
    if len(matches) > 1:
        raise UserError(f"TRIAL: {len(matches)} trials start with {start}. Add digits.")
    return next(iter(matches), None)


def _stoppable(
    store: Store, running_keys: Sequence[StudyKey], study: str | None, variants: VariantFilter
) -> list[StudyKey]:
    name = study and study_name(study)
    candidates = running_keys if name == ALL else [summary.key for summary in store.studies()]
    matches = [key for key in candidates if name in (ALL, key.study) and variants.fits(key)]
    if not matches:
        names = ", ".join(dict.fromkeys(key.study for key in running_keys)) or "none"
        problem = "name a study, a trial or all"
        if study:
            subject = f"no study{variants} is" if study == ALL else f"{study!r}{variants} is not"
            problem = f"{subject} running"
        raise UserError(f"stop: {problem}. Running studies: {names}.")
    return [key for key in matches if key in running_keys] or matches
