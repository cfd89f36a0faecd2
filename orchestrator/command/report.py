"""The command `report`: reports of what the store holds, without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import console, named_study, store_url
from orchestrator.command.variants import VariantFilter, choose_variant, typed_filter
from search_spaces.catalog import ALL, NAMES
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.store import Store, StudyKey
    from search_spaces.study import Study


def report(
    context: typer.Context,
    study: options.StudyArgument,
    scale: options.AnyScale = None,
    corpus: options.AnyCorpus = None,
    settings: options.AnySettings = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    out: Annotated[Path | None, typer.Option("--out", help="The folder to write to.")] = None,
) -> None:
    """Write the report of what the store holds, trials missing or not; with all, of every built-in study it has."""
    from orchestrator.report import summary_group
    from orchestrator.storage import storage_at
    from orchestrator.store import open_store
    from orchestrator.sweep import report_folder, write_index, write_report

    variants, url = typed_filter(scale, corpus, settings), store_url(store, storage)
    place = storage_at(storage)
    if study == ALL and out is not None:
        raise UserError("--out is the folder of one report, and all writes several: leave it away, or name a study")
    shown = console()
    with open_store(url, create=False) as opened:
        chosen = _every_variant(opened, variants) if study == ALL else _variant(opened, study, variants)
        for key, content in chosen.items():
            folder = (out or report_folder(place, key)).resolve()
            argument = key.study if study == ALL else study
            result = write_report(opened, content, key, folder, argument=argument, typed=context.obj)
            if study != ALL:
                shown.print(summary_group(result))
            shown.print(f"Report: {result.path}", soft_wrap=True)
            if out is None:
                index = write_index(result.path, place, shown)
    if out is None:
        shown.print(f"All reports: {index}", soft_wrap=True)


def _variant(store: Store, argument: str, variants: VariantFilter) -> dict[StudyKey, Study]:
    study = named_study(argument)
    return {choose_variant(store, study.name, variants): study}


def _every_variant(store: Store, variants: VariantFilter) -> dict[StudyKey, Study]:
    keys = [summary.key for summary in store.studies() if variants.fits(summary.key)]
    chosen = {key: named_study(key.study) for key in keys if key.study in NAMES}
    if not chosen:
        raise UserError(f"the store has no built-in study{variants}: see what it has with python sweep.py status")
    return chosen
