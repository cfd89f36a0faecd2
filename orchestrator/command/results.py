"""The commands over what the store holds: `results` and `report`."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import (
    check_choice,
    console,
    open_existing,
    print_err,
)
from search_spaces.catalog import ALL, NAMES, is_file, load_study
from trainables.errors import PROGRAM, UserError

if TYPE_CHECKING:
    from orchestrator.analysis import FlatResults
    from orchestrator.store import Store, StudyKey
    from search_spaces.study import Study


@dataclass(frozen=True, kw_only=True)
class VariantFilter:
    """What variants must have; None takes any."""

    scale: str | None = None
    corpus: str | None = None
    overrides: str | None = None

    def fits(self, key: StudyKey) -> bool:
        """Whether this variant is meant."""
        pairs = (
            (self.scale, key.scale),
            (self.corpus, key.corpus),
            (self.overrides, key.overrides),
        )
        return all(required in (None, value) for required, value in pairs)

    def __str__(self) -> str:
        from orchestrator.variants import Variant

        parts = {"scale": self.scale, "corpus": self.corpus}
        words = [f"{name} {value}" for name, value in parts.items() if value]
        if self.overrides is not None:
            words += Variant.read(self.overrides).typed or ["without --model and --set"]
        return "".join(f", {part}" for part in words)


def typed_filter(
    scale: str | None, corpus: str | None, settings: list[str] | None, model: str | None
) -> VariantFilter:
    """The filter of the options of these names."""
    from orchestrator.variants import chosen_variant, parse_settings
    from trainables.corpora import corpus_name

    chosen = chosen_variant(parse_settings(settings or []), model)
    overrides = chosen.text if settings or model else None
    # A folder's path names its corpus here as it does in a run.
    return VariantFilter(scale=scale, corpus=corpus and corpus_name(corpus), overrides=overrides)


def study_name(argument: str) -> str:
    """The name under which the store has a study: a name is taken as it is, a file is asked for its
    study's."""
    return load_study(argument).name if is_file(argument) else argument


def no_study(
    study: str, keys: Iterable[StudyKey], variants: VariantFilter | None = None
) -> UserError:
    """That none of the variants of the store, `keys`, is of that study, or none of those is
    meant."""
    names = dict.fromkeys(key.study for key in keys)
    hint = (
        f": see which variants it has with {PROGRAM} status {shlex.quote(study)}"
        if study in names
        else f"; it has {', '.join(names) or 'none'}: choose one of these, or run it first"
    )
    return UserError(f"the store has no study {study!r}{variants or ''}{hint}")


def _variants(store: Store, study: str, variants: VariantFilter) -> list[StudyKey]:
    """The variants of a study that are meant, those with a result first, then those without
    `--set`, then those planned last. Raises UserError where none fits."""
    every = store.studies()
    summaries = [s for s in every if s.key.study == study and variants.fits(s.key)]
    if not summaries:
        raise no_study(study, (summary.key for summary in every), variants)
    order = {
        s.key: (s.counts["done"] > 0, s.key.overrides == "{}", place)
        for place, s in enumerate(summaries)
    }
    return sorted(order, key=order.__getitem__, reverse=True)


def _choose_variant(store: Store, study: str, variants: VariantFilter) -> StudyKey:
    """The first of them; which of several, is said."""
    chosen, *others = _variants(store, study, variants)
    if others:
        from orchestrator.variants import Variant

        print_err(
            f"Of {1 + len(others)} variants of {study}, this is the one at scale {chosen.scale}, "
            f"corpus {chosen.corpus}"
            f"{Variant.read(chosen.overrides)}; name another with --scale, --corpus, --model and --set."
        )
    return chosen


def results(
    study: options.OneStudyArgument,
    scale: options.AnyScale = None,
    corpus: options.AnyCorpus = None,
    settings: options.AnySettings = None,
    model: options.AnyModel = None,
    setting: Annotated[
        str | None,
        typer.Option(
            metavar="HASH", help="Only the setting of this hash, or of these first digits of it."
        ),
    ] = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    form: Annotated[
        str, options.choice(*options.FORMATS, "parquet", name="--format", help="How to print it.")
    ] = "table",
) -> None:
    """Print all trials of a study with their configs and metrics."""
    from orchestrator.analysis import flatten
    from orchestrator.report import FORMATS, group_metrics, write_parquet, write_results

    variants = typed_filter(scale, corpus, settings, model)
    check_choice(form, FORMATS)
    if form == "parquet" and sys.stdout.isatty():
        raise UserError(
            "parquet is a binary format: send it to a file, for example with > results.parquet"
        )
    with open_existing(store, storage) as opened:
        if setting is None:
            key = _choose_variant(opened, study_name(study), variants)
            trials = flatten(opened.results(key)).of_variant(key)
        else:
            trials = _of_setting(opened, study_name(study), variants, setting)
    if form == "parquet":
        write_parquet(trials, sys.stdout.buffer)
    else:
        # Of a study whose file was not named, nobody knows which metrics it is about.
        first = group_metrics(load_study(study)) if study in NAMES or is_file(study) else []
        write_results(trials, form, sys.stdout, first)  # type: ignore[arg-type]


def _of_setting(store: Store, study: str, variants: VariantFilter, setting: str) -> FlatResults:
    """The trials of a setting, in the first variant that has any. Raises UserError where none
    has."""
    from orchestrator.analysis import flatten

    digits = setting.removeprefix("#").lower()
    for key in _variants(store, study, variants) if re.fullmatch("[0-9a-f]{4,64}", digits) else ():
        trials = flatten(store.results(key)).of_setting(digits)
        if trials.records:
            return trials.of_variant(key)
    raise UserError(
        "--setting takes the first 4 or more digits of a setting's hash, and no trial of "
        f"{study}{variants} has one that begins with {setting!r}: see the column setting of "
        f"{PROGRAM} results {shlex.quote(study)}"
    )


def report(
    context: typer.Context,
    study: options.StudyArgument,
    scale: options.AnyScale = None,
    corpus: options.AnyCorpus = None,
    settings: options.AnySettings = None,
    model: options.AnyModel = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="The folder to write to.")] = None,
    bundle: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Write a folder for any static host, with a page over all of it."
        ),
    ] = None,
) -> None:
    """Write the report of what the store holds, trials missing or not; with all, of every built-in
    study it has."""
    from orchestrator.report import summary_group
    from orchestrator.storage import storage_at
    from orchestrator.sweep import Typed, open_bundle, report_folder, write_index, write_report

    variants = typed_filter(scale, corpus, settings, model)
    place = storage_at(storage)
    _check_out(out, study, bundle)
    shown = console()
    with open_existing(store, storage) as opened:
        chosen = _chosen(opened, study, variants)
        root = open_bundle(Path(bundle)) if bundle else None
        for key, content in chosen.items():
            folder = (
                root / key.variant if root else Path(out or report_folder(place, key)).resolve()
            )
            argument = key.study if study == ALL else study
            # Whoever reads a bundle has other folders.
            typed = (
                Typed(study=Path(argument).name)
                if root
                else Typed(study=argument, options=options.typed_options(context))
            )
            result = write_report(opened, content, key, folder, typed=typed, index=out is None)
            if study != ALL:
                shown.print(summary_group(result))
            shown.print(f"Report: {result.path}")
            if out is None:
                index = write_index(result.path, None if root else place, shown)
    if out is None:
        shown.print(f"All reports: {index}")


def _check_out(out: str | None, study: str, bundle: str | None) -> None:
    for option, folder in (("--out", out), ("--bundle", bundle)):
        if folder == "":
            raise UserError(
                f"{option} takes the path of a folder, and got an empty one: name a folder to "
                f"write to"
            )
    if study == ALL and out is not None:
        raise UserError(
            "--out is the folder of one report, and all writes several: leave it out, or name a "
            "study"
        )
    if bundle is not None and out is not None:
        raise UserError("--out and --bundle both say where to write: leave one of them out")


def _chosen(store: Store, argument: str, variants: VariantFilter) -> dict[StudyKey, Study]:
    """The variant of the study that is meant; for all, those that fit of built-in studies, and of
    your own whose files are in this folder."""
    if argument != ALL:
        study = load_study(argument)
        return {_choose_variant(store, study.name, variants): study}
    keys = [summary.key for summary in store.studies() if variants.fits(summary.key)]
    arguments = {key: key.study if key.study in NAMES else f"./{key.study}.py" for key in keys}
    chosen = {
        key: load_study(name)
        for key, name in arguments.items()
        if name in NAMES or Path(name).is_file()
    }
    if not chosen:
        if keys:
            raise UserError(
                f"the store has only studies of your own, with no file in this folder: name one, "
                f"{keys[0].study}.py"
            )
        raise UserError(f"the store has no study{variants}: see what it has with {PROGRAM} status")
    return chosen
