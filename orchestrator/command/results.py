"""The commands `results` and `report`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.command import options
from orchestrator.command.options import console, open_existing, print_document, print_err
from search_spaces.catalog import ALL, NAMES, is_command, is_file, load_study
from trainables.errors import PROGRAM, UserError, did_you_mean

if TYPE_CHECKING:
    from orchestrator.store import Store, StudyKey


@dataclass(frozen=True, kw_only=True)
class VariantFilter:
    """Conditions on a study's scale, corpus and overrides; None matches any value."""

    scale: str | None = None
    corpus: str | None = None
    overrides: str | None = None

    def fits(self, key: StudyKey) -> bool:
        """Return whether a variant of a study meets the conditions."""
        return all(value in (None, getattr(key, name)) for name, value in vars(self).items())

    def __str__(self) -> str:
        from orchestrator.variants import Variant

        words = [f"scale {self.scale}"] if self.scale else []
        words += [f"corpus {self.corpus}"] if self.corpus else []
        if self.overrides is not None:
            words += Variant.read(self.overrides).typed or ["without --model and --set"]
        return "".join(f", {word}" for word in words)


def typed_filter(
    scale: str | None, corpus: str | None, settings: list[str] | None, model: str | None
) -> VariantFilter:
    """Return the filter for the values of --scale, --corpus, --set and --model."""
    from orchestrator.variants import chosen_variant, parse_settings
    from trainables.corpora import corpus_name

    variant = chosen_variant(parse_settings(settings or []), model)
    overrides = variant.text if settings or model else None
    # A folder's path is turned into its corpus name, as in a run.
    return VariantFilter(scale=scale, corpus=corpus and corpus_name(corpus), overrides=overrides)


def study_name(argument: str) -> str:
    """Return the study's name. `argument` is that name or the study's file."""
    try:
        return load_study(argument).name if is_file(argument) else argument
    except UserError as error:
        if not isinstance(error.__cause__, ModuleNotFoundError):
            raise
        raise UserError(f"{error} Or give the study's name instead of its file.") from error


def no_study(
    study: str, keys: Iterable[StudyKey], variants: VariantFilter | None = None
) -> UserError:
    """Return the error that the store has no matching variant of `study`."""
    names = dict.fromkeys(key.study for key in keys)
    hint = (
        f". List its variants with: {PROGRAM} status {shlex.quote(study)}"
        if study in names
        else f"; {did_you_mean(study, names)}it has {', '.join(names) or 'none'}. Choose one of "
        "these, or run it first."
    )
    return UserError(f"the store has no study {study!r}{variants or ''}{hint}")


def choose_variant(store: Store, study: str, variants: VariantFilter) -> StudyKey:
    """Return a variant that fits: if possible with results, then without `--set`, then the last."""
    all_summaries = store.studies()
    summaries = [s for s in all_summaries if s.key.study == study and variants.fits(s.key)]
    if not summaries:
        raise no_study(study, (summary.key for summary in all_summaries), variants)
    key = max(
        reversed(summaries), key=lambda s: (s.counts["done"] > 0, s.key.overrides == "{}")
    ).key
    if len(summaries) > 1:
        from orchestrator.variants import Variant

        print_err(
            f"{study} has {len(summaries)} variants; the chosen one has scale {key.scale}, corpus "
            f"{key.corpus}{Variant.read(key.overrides)}. Choose another with --scale, "
            f"--corpus, --model or --set."
        )
    return key


def results(
    study: options.OneStudyArgument,
    scale: options.AnyScale = None,
    corpus: options.AnyCorpus = None,
    settings: options.AnySettings = None,
    model: options.AnyModel = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    form: Annotated[
        Literal["table", "csv", "json", "parquet"],
        typer.Option("--format", help="Output format."),
    ] = "table",
) -> None:
    """Print a study's trials with their configs and metrics."""
    from orchestrator.analysis import flatten
    from orchestrator.report import group_metrics, write_parquet, write_results
    from orchestrator.sweep import stored_command

    variants = typed_filter(scale, corpus, settings, model)
    if form == "parquet" and sys.stdout.isatty():
        raise UserError(
            "--format parquet: a terminal cannot show it. Redirect it to a file: > results.parquet"
        )
    with open_existing(store, storage) as results_store:
        key = choose_variant(results_store, study_name(study), variants)
        trials = flatten(results_store.results(key)).of_variant(key)
    if form == "parquet":
        write_parquet(trials.columns, trials.records, sys.stdout.buffer)
    else:
        # The metrics of a user's study are unknown if it is named without its file.
        argument = stored_command(study, storage) or study
        is_known = argument in NAMES or is_file(argument) or is_command(argument)
        first_metrics = group_metrics(load_study(argument)) if is_known else []
        write_results(trials, form, sys.stdout, first_metrics)


def report(
    context: typer.Context,
    study: options.StudyArgument,
    scale: options.AnyScale = None,
    corpus: options.AnyCorpus = None,
    settings: options.AnySettings = None,
    model: options.AnyModel = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    pdf: Annotated[
        bool,
        typer.Option(
            "--pdf",
            help="Also write each figure as PDF and PNG. Later reports update these files.",
        ),
    ] = False,
    form: options.TextFormat = "text",
) -> None:
    """Write the report of a study, even if trials are missing.

    With `all`, writes one for every study in the store that is built in or has its file NAME.py in
    the current folder. --format json prints all verdicts and numbers.
    """
    from orchestrator.report import CARD_FILE, summary_group
    from orchestrator.storage import storage_at
    from orchestrator.sweep import Typed, report_folder, write_index, write_report

    variants, cards = typed_filter(scale, corpus, settings, model), []
    location, terminal = storage_at(storage), console(stderr=form == "json")
    with open_existing(store, storage) as results_store:
        for key, argument in _arguments(results_store, study, variants, storage).items():
            command_line = Typed(study=argument, options=options.typed_options(context))
            content, out = load_study(argument), report_folder(location, key)
            result = write_report(results_store, content, key, out, typed=command_line, pdf=pdf)
            if form == "json":
                card = json.loads(result.path.with_name(CARD_FILE).read_bytes())
                cards.append({**card, "path": result.path})
            elif study != ALL:
                terminal.print(summary_group(result))
            terminal.print(f"Report: {result.path}")
            index = write_index(result.path, location, terminal)
    terminal.print(f"All reports: {index}")
    if form == "json":
        print_document("report", reports=cards)


def _arguments(
    store: Store, argument: str, variants: VariantFilter, storage: str
) -> dict[StudyKey, str]:
    from orchestrator.sweep import stored_command, study_argument

    if argument != ALL:
        argument = stored_command(argument, storage) or argument
        return {choose_variant(store, load_study(argument).name, variants): argument}
    keys = [summary.key for summary in store.studies() if variants.fits(summary.key)]
    names = {key: study_argument(key.study, storage) for key in keys}
    arguments = {
        key: name for key, name in names.items() if not is_file(name) or Path(name).is_file()
    }
    if not arguments:
        if keys:
            raise UserError(
                f"report all: the store has only your own studies, and this folder has none of "
                f"their files. Name a file, such as {keys[0].study}.py."
            )
        raise UserError(
            f"the store has no study{variants}. List its studies with: {PROGRAM} status"
        )
    return arguments
