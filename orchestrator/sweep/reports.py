"""Write reports from the store, and the index of all reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.plan import reported_study
from orchestrator.store import StudyKey
from orchestrator.sweep.commands import Typed, paper_command, run_command

if TYPE_CHECKING:
    from orchestrator.report import ReportResult
    from orchestrator.storage import Storage
    from orchestrator.store import Store
    from search_spaces.study import Study


def report_folder(storage: Storage, key: StudyKey) -> Path:
    """Return the folder of a study variant's report."""
    return storage.folder / "reports" / key.variant


def write_report(
    store: Store, study: Study, key: StudyKey, out: Path, *, typed: Typed, pdf: bool = False
) -> ReportResult:
    """Write the report of a study variant. Its pages link to the index of reports."""
    from orchestrator.report import build_report

    rows = store.results(key)
    return build_report(
        reported_study(key, study),
        key,
        rows,
        spectra=store.spectra(key),
        epochs=store.epochs_by_trial(key),
        run_command=run_command(typed, study, key, rows),
        paper_command=paper_command(typed, study, key),
        out=out,
        pdf=pdf,
    )


def write_index(page: Path, storage: Storage, console: Console) -> Path:
    """Write the index of all reports; upload it and `page` if the storage is an object store."""
    from orchestrator.report import CARD_FILE
    from orchestrator.report import write_index as write_page

    storage.bring_reports(CARD_FILE)
    index = write_page(page.parent.parent)
    address = storage.publish_report(page, index)
    if address is not None:
        console.print(f"Report in the object store: {address}")
    return index
