"""Copy sealed results from one storage to another, for exports and imports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.store import LOST, expire_dead_owners, open_store
from orchestrator.sweep.rebuild import fill
from orchestrator.sweep.study_file import read_study_file, write_study_file
from orchestrator.words import counted, short_id
from search_spaces.catalog import is_command
from trainables.errors import UserError, first_line
from trainables.trial_folder import (
    KEPT_WEIGHTS,
    RESULT,
    SPECTRUM,
    DamagedFileError,
    TrialFolder,
    UnreadableFileError,
    measurement_files,
    measurement_names,
    read_file,
    write_file,
)

if TYPE_CHECKING:
    from orchestrator.storage import Storage

Note = Callable[[str], None]


def import_results(source: Storage, target: Storage, url: str, note: Note) -> None:
    """Copy the studies and results of `source` to `target`, and record them in the store at `url`.

    Done trials stay as they are. `note` receives sentences about what was imported and what was
    not. Raises UserError if `source` has no trials and, at the end, if it has damaged files.
    """
    files, contents = source.trial_files(), []
    damage: list[str] = []
    for path in source.study_files():
        with _noted(damage):
            contents.append(read_study_file(path))
    if not (files or contents or damage):
        raise UserError(f"import: {source} has no trials. Name an export or a storage folder.")
    target.check()
    with open_store(url) as store:
        expire_dead_owners(store)
        busy = {trial.trial_id for trial in store.running() if trial.alive}
        copied_ids = copy_results(source, target, files, note, damage, busy)
        with store.one_transaction():
            plans = []
            for content in contents:
                key, here = content.key, {row.trial_id for row in store.trials(content.key)}
                trial_ids = {trial.trial_id for trial in content.trials}
                if not here <= trial_ids:
                    note(f"{key.variant} has another plan here, which stays.")
                    continue
                plans.append(content)
                if here != trial_ids:
                    # A path of another machine may be another file here.
                    file = content.file if is_command(content.file) else ""
                    write_study_file(target, key, content.planned_at, content.trials, file=file)
            store.reset(copied_ids, states=(*LOST, "pruned"))
            _, count = fill(store, target, plans, target.trial_files(files), note)
    note(f"Imported {counted(count, 'result')} of {counted(len(files), 'trial')} from {source}.")
    if damage:
        raise UserError(f"import: damaged, and left out: {'; '.join(damage)}.")


def copy_results(
    source: Storage,
    target: Storage,
    files: Mapping[str, Collection[str]],
    note: Note,
    damage: list[str],
    busy: Collection[str] = (),
) -> list[str]:
    """Copy the sealed files of the trials in `files` (names by trial id); return the copied ids.

    Done trials of the target stay, and so do trials that are `busy` or locked; `note` receives a
    sentence about them. A clause about each damaged file is added to `damage`.
    """
    source.bring(files, {name for names in files.values() for name in names if "/" not in name})
    target.bring(files)
    present, copied_ids = target.trial_files(files), []
    for trial_id, names in files.items():
        here = present.get(trial_id, {})
        if trial_id in busy or (here and target.trial(trial_id).in_use()):
            note(f"{short_id(trial_id)} is running here and was left out.")
            continue
        with _noted(damage):
            trial = source.trial(trial_id)
            config, result = trial.config(), trial.result()
            if result is None:
                continue
            outcome, old_outcome = result[0], target.trial(trial_id).outcome()
            chosen = [*([] if result[1] is None else [SPECTRUM]), *_later(trial, names, damage)]
            if old_outcome is not None and (old_outcome.state == "done" or outcome.state != "done"):
                if old_outcome != outcome:
                    note(f"{short_id(trial_id)} has another result here, which stays.")
                    continue
                chosen = [name for name in chosen if name not in here]
            else:
                chosen.append(RESULT)  # last: until then, the trial looks unfinished
            if links := {*chosen} - {*names}:
                raise DamagedFileError(f"{trial.path / min(links)} is a link")
            if not chosen:
                continue
            with target.working(trial_id) as folder:
                folder.path.mkdir(parents=True, exist_ok=True)
                with folder.locked():
                    folder.write_config(config.model_dump_json(indent=1))
                    for name in chosen:
                        write_file(folder.path / name, read_file(trial.path / name))
            copied_ids.append(trial_id)
    return copied_ids


def _later(trial: TrialFolder, files: Collection[str], damage: list[str]) -> list[str]:
    """Return the files of sound measurements and sound weights."""
    names = []
    for name in measurement_names(files):
        with _noted(damage):
            if measured := trial.measurement(name):
                names += measurement_files([name])[measured.singular_values is None :]
    if KEPT_WEIGHTS in files:
        with _noted(damage):
            trial.check_kept_weights()
            names.append(KEPT_WEIGHTS)
    return names


@contextmanager
def _noted(damage: list[str]) -> Iterator[None]:
    try:
        yield
    except (DamagedFileError, UnreadableFileError) as error:
        damage.append(first_line(error))
