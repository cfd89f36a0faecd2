"""Export a study as an appendix of a paper, which another machine can import."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.analysis import count_values
from orchestrator.storage import FolderStorage
from orchestrator.sweep.commands import Typed
from orchestrator.sweep.exchange import Note, copy_results
from orchestrator.sweep.reports import report_folder, write_report
from orchestrator.sweep.study_file import write_study_file
from orchestrator.words import counted
from search_spaces.catalog import is_command
from trainables.errors import PROGRAM, UserError
from trainables.trial_folder import KEPT_WEIGHTS, LOCK

if TYPE_CHECKING:
    from orchestrator.storage import Storage
    from orchestrator.store import Store, StudyKey
    from search_spaces.study import Study

README = """# {key.study}, scale {key.scale}, corpus {key.corpus}

| path | content |
| --- | --- |
| `reports/{key.variant}/report.html` | the report; its figures are the SVG, PDF and PNG files |
| `reports/{key.variant}/*.csv`, `*.parquet` | trials, settings (configs), tests, epochs, spectra |
| `studies/{key.variant}.json` | the plan: each trial's name and complete config |
| `trials/` | config and sealed results of each trial, in a folder named by its id |
| `environment.json` | number of trials by code version, package version, host and device |
| `SHA256SUMS` | SHA-256 of each file |

Verify the files with `sha256sum --check --quiet SHA256SUMS`. Add the results to your own with
`{program} import DIR`.
"""


def export_study(
    store: Store,
    storage: Storage,
    key: StudyKey,
    study: Study,
    folder: Path,
    note: Note,
    *,
    typed: Typed,
    weights: bool,
) -> None:
    """Write a study variant to `folder`, with or without weights.

    Raises UserError if `folder` is not empty and, at the end, if files of trials are damaged.
    """
    from pyarrow import csv, parquet

    from orchestrator.report import write_archive, write_index

    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise UserError(f"export: {folder} is not empty. Name a new folder.")
    target, rows = FolderStorage(folder.resolve()), store.trials(key)
    damage: list[str] = []
    files = storage.trial_files([row.trial_id for row in rows])
    excluded = set() if weights else {KEPT_WEIGHTS}
    chosen = {trial_id: names.keys() - excluded for trial_id, names in files.items()}
    copied_ids = copy_results(storage, target, chosen, note, damage)
    planned_at = next(summary.planned_at for summary in store.studies() if summary.key == key)
    file = typed.study if is_command(typed.study) else ""
    write_study_file(target, key, planned_at, rows, file=file)
    out = report_folder(target, key)
    write_report(store, study, key, out, typed=typed, pdf=True)
    write_index(out.parent)
    for table in out.glob("*.csv"):
        parquet.write_table(csv.read_csv(table), table.with_suffix(".parquet"))
    write_archive(store, key, out)
    environment = count_values([row.environment for row in rows if row.state == "done"])
    (folder / "environment.json").write_text(json.dumps(environment, indent=1))
    (folder / "README.md").write_text(README.format(key=key, program=PROGRAM), encoding="utf-8")
    for path in folder.rglob(LOCK):
        path.unlink()
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    note(f"Exported {counted(len(copied_ids), 'result')} to {folder}.")
    if damage:
        raise UserError(f"export: damaged, and left out: {'; '.join(damage)}.")
