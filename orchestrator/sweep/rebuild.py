"""Rebuild a store from the storage's files, or compare a store with these files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.schedule import Recorder
from orchestrator.store import PlannedTrial, open_store, replaced
from orchestrator.sweep.study_file import StudyFile, read_study_file
from orchestrator.words import counted, listed, short_id
from trainables.errors import PROGRAM, UserError
from trainables.trial_folder import (
    CONFIG,
    RESULT_FILES,
    DamagedFileError,
    TrialFolder,
    measurement_files,
    measurement_names,
)

if TYPE_CHECKING:
    from orchestrator.storage import Storage
    from orchestrator.store import Store

# This limits the number of spectra in memory.
BATCH_TRIALS = 500


def rebuild_store(url: str, storage: Storage, note: Callable[[str], None]) -> None:
    """Rebuild the store at `url` from the files of studies and trials in the storage.

    An old SQLite file is renamed; a PostgreSQL database must be empty. Attempts, runs and causes of
    failures are lost, and failed trials are planned again. Damaged files are reported. Raises
    UserError if another command has the store open. An error leaves the old store unchanged.
    """
    files, study_files = storage.trial_files(), storage.study_files()
    if not files and not study_files:
        raise UserError(f"--storage: {storage} holds no trials. Name the folder of the results.")
    with replaced(url, note) as new_url, open_store(new_url) as store, store.one_transaction():
        contents = []
        for path in study_files:
            try:
                contents.append(read_study_file(path))
            except DamagedFileError as error:
                note(f"A study is not in the new store until you run it again: {error}.")
        trial_count, result_count = fill(store, storage, contents, files, note)
    note(
        f"The new results store has {counted(len(contents), 'study', 'studies')}, "
        f"{counted(trial_count, 'trial')} and {counted(result_count, 'result')}."
    )


def fill(
    store: Store,
    storage: Storage,
    contents: Sequence[StudyFile],
    files: Mapping[str, Collection[str]],
    note: Callable[[str], None],
) -> tuple[int, int]:
    """Register the studies, and record the results of the trials in `files`.

    `files` has the names of each trial's files. Returns the numbers of trials and new results.
    """
    trials_by_id: dict[str, PlannedTrial] = {}
    for content in sorted(contents, key=lambda content: content.planned_at):
        store.register(content.key, content.trials, planned_at=content.planned_at)
        trials_by_id |= {trial.trial_id: trial for trial in content.trials}
    orphans = _read_orphans(storage, sorted(files.keys() - trials_by_id.keys()), note)
    store.add_trials(orphans)
    trials_by_id |= {trial.trial_id: trial for trial in orphans}
    trials = [trials_by_id[trial_id] for trial_id in files if trial_id in trials_by_id]
    if orphans:
        note(
            f"The store has {counted(len(orphans), 'trial')} without a study. Run "
            f"`{PROGRAM} STUDY` to assign trials to STUDY; no trial is trained again."
        )
    return len(trials_by_id), _record(store, storage, trials, files, note)


def _read_orphans(
    storage: Storage, trial_ids: Sequence[str], note: Callable[[str], None]
) -> list[PlannedTrial]:
    storage.bring(trial_ids, [CONFIG])
    trials = []
    for trial_id in trial_ids:
        try:
            trials.append(PlannedTrial.of(storage.trial(trial_id).config(), short_id(trial_id)))
        except DamagedFileError as error:
            note(
                f"The trial {short_id(trial_id)} is not in the new store until you run its study "
                f"again: {error}."
            )
    return trials


def _record(
    store: Store,
    storage: Storage,
    trials: Sequence[PlannedTrial],
    files: Mapping[str, Collection[str]],
    note: Callable[[str], None],
) -> int:
    recorder = Recorder(store, storage, run_id=None)
    recovered = recorder.recover(trials, note=note, may_be_pruned=lambda _: True)
    states = store.states([trial.trial_id for trial in trials])
    later = {
        trial_id: names
        for trial_id, state in states.items()
        if state == "done" and (names := measurement_names(files[trial_id]))
    }
    for trial_id, problem in recorder.measurements(later)[1].items():
        note(f"{short_id(trial_id)}: {problem}.")
    return len(recovered)


def check_store(url: str, storage: Storage) -> list[str]:
    """Return a sentence for each done trial whose files are missing or differ from the store.

    Raises UserError if the store is damaged.
    """
    sentences = []
    with open_store(url, create=False) as store:
        done_ids = store.done()
        for start in range(0, len(done_ids), BATCH_TRIALS):
            stored = store.ended(done_ids[start : start + BATCH_TRIALS])
            names = set[str]().union(*(trial["measurements"] for trial in stored.values()))
            storage.bring(stored, [*RESULT_FILES, *measurement_files(names)])
            for trial_id, trial in stored.items():
                if problem := _difference(storage.trial(trial_id), trial):
                    sentences.append(f"Trial {short_id(trial_id)}: {problem}.")
    return sentences


def _difference(folder: TrialFolder, stored: Mapping[str, Any]) -> str | None:
    try:
        result = folder.result()
        if result is None:
            return f"its result is in the store, but not in {folder.path}"
        outcome, spectrum = result
        measurements = dict(outcome.measurements)
        for name in stored["measurements"].keys() - measurements.keys():
            later = folder.measurement(name)
            if later is not None:
                measurements[name] = later.metrics
                spectrum = spectrum if later.singular_values is None else later.singular_values
    except DamagedFileError as error:
        return f"its result is only in the store: {error}"
    files = {
        "state": outcome.state,
        "cause": outcome.cause,
        "environment": outcome.environment,
        "epochs": list(outcome.epochs),
        "measurements": measurements,
        "spectrum": None if spectrum is None else spectrum.tobytes(),
    }
    parts = [name for name, value in files.items() if value != stored[name]]
    return f"the store differs from its files in {listed(parts)}" if parts else None
