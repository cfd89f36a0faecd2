"""The command `report`: reports of what the store holds, without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.command.listing import Wanted, choose_variant
from orchestrator.store.opening import open_store
from orchestrator.sweep.announcement import paper_command
from orchestrator.sweep.study_run import default_report_folder, write_all, write_report
from search_spaces import catalog
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.storage.mirror import Mirror
    from orchestrator.store.records import StudyKey
    from orchestrator.store.store import Store
    from search_spaces.study import Study


def report_again(
    argument: str,
    wanted: Wanted,
    store_url: str,
    storage: Path,
    mirror: Mirror | None,
    out: Path | None,
    typed: Sequence[str],
    console: Console,
) -> None:
    """Write the report of one variant of a study, or of all variants of the built-in ones, and print its numbers.

    `storage` is a folder, or this machine's copy of the `mirror`. `out` replaces the default folder; `typed` is the
    command line. Raises UserError where nothing fits.
    """
    from orchestrator.report.terminal import summary_group

    everything = argument == catalog.ALL
    if everything and out is not None:
        raise UserError("--out is the folder of one report, and all writes several: leave it away, or name a study")
    with open_store(store_url, create=False) as store:
        chosen = _every_variant(store, wanted) if everything else _variant(store, argument, wanted)
        for key, study in chosen.items():
            folder = (out or default_report_folder(storage, key)).resolve()
            command = paper_command(key.study if everything else argument, study, key, typed)
            result = write_report(store, study, key, folder, paper_command=command)
            if not everything:
                console.print(summary_group(result))
            console.print(f"Report: {result.path}", soft_wrap=True)
            if out is None:
                index = write_all(result.path, mirror, console)
    if out is None:
        console.print(f"All reports: {index}", soft_wrap=True)


def _variant(store: Store, argument: str, wanted: Wanted) -> dict[StudyKey, Study]:
    study = catalog.load_study(argument)
    return {choose_variant(store, study.name, wanted): study}


def _every_variant(store: Store, wanted: Wanted) -> dict[StudyKey, Study]:
    found = [summary.key for summary in store.studies() if wanted.fits(summary.key)]
    chosen = {key: catalog.load_study(key.study) for key in found if key.study in catalog.NAMES}
    if not chosen:
        raise UserError(f"the store has no built-in study{wanted}: see what it has with python sweep.py status")
    return chosen
