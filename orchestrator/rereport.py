"""The command `report`: reports of what the store holds, without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.announce import paper_command
from orchestrator.listing import Wanted, choose_variant
from orchestrator.store.opening import open_store
from orchestrator.sweep import default_report_folder, write_report
from search_spaces import catalog
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.store.interface import Store
    from orchestrator.store.records import StudyKey


def report_again(
    argument: str,
    wanted: Wanted,
    store_url: str,
    storage: Path,
    out: Path | None,
    typed: Sequence[str],
    console: Console,
) -> None:
    """Write the report of one variant of a study, or of all variants of the built-in ones, and print its numbers.

    `out` replaces the default folder; `typed` is the command line. Raises UserError where nothing fits.
    """
    from orchestrator.report.index import write_index
    from orchestrator.report.terminal import summary_group

    everything = argument == catalog.ALL
    if everything and out is not None:
        raise UserError("--out is the folder of one report, and all writes several: leave it away, or name a study")
    with open_store(store_url, create=False) as store:
        chosen = _every_variant(store, wanted) if everything else {_variant(store, argument, wanted): argument}
        for key, name in chosen.items():
            study, folder = catalog.load_study(name), (out or default_report_folder(storage, key)).resolve()
            command = paper_command(name, study, key, typed)
            result = write_report(store, study, key, folder, paper_command=command)
            if not everything:
                console.print(summary_group(result.summary))
            console.print(f"Report: {result.path}", soft_wrap=True)
    if out is None:
        index = write_index(folder.parent)
        console.print(f"All reports: {index}", soft_wrap=True)


def _variant(store: Store, argument: str, wanted: Wanted) -> StudyKey:
    return choose_variant(store, catalog.load_study(argument).name, wanted)


def _every_variant(store: Store, wanted: Wanted) -> dict[StudyKey, str]:
    found = [summary.key for summary in store.studies() if wanted.fits(summary.key)]
    chosen = {key: key.study for key in found if key.study in catalog.NAMES}
    if not chosen:
        raise UserError(f"the store has no built-in study{wanted}: see what it has with python sweep.py status")
    return chosen
