"""Sizes of trials' files, and the removal of studies, trials and weights."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from orchestrator.storage import STUDIES
from orchestrator.store import StudyKey
from orchestrator.sweep.study_file import SHARED
from orchestrator.variants import setting_hash
from orchestrator.words import byte_count, counted, is_number, listed
from trainables.errors import PROGRAM, UserError
from trainables.trial_folder import FILE_KINDS, file_kind, trial_directory

if TYPE_CHECKING:
    from orchestrator.cluster import RunOptions
    from orchestrator.plan import Plan
    from orchestrator.storage import Storage
    from orchestrator.store import Store

WEIGHTS = ("weights", "checkpoints")
Files = Mapping[str, Mapping[str, int]]
"""Size in bytes of each trial's files, by trial id and name."""


def file_sizes(
    store: Store, storage: Storage, study: str | None, *, as_text: bool
) -> list[dict[str, Any]]:
    """Return the bytes of each variant of `study` by kind of file, as numbers or as text.

    For all studies (None), the last record counts each trial once.
    """
    files, total = storage.trial_files(), StudyKey(study="total", scale="", corpus="", overrides="")
    sizes: defaultdict[StudyKey, Counter[str]] = defaultdict(Counter)
    for trial_id, key in (*store.studies_of(""), *((trial_id, total) for trial_id in files)):
        # Every study gets a record, even without files.
        for name, size in {"": 0, **files.get(trial_id, {})}.items():
            sizes[key].update({file_kind(name): size, "total": size})
    show = byte_count if as_text else int
    return [
        {**vars(key), **{kind: show(counts[kind]) for kind in (*FILE_KINDS, "total")}}
        for key, counts in sizes.items()
        if study in (None, key.study)
    ]


def forget(
    store: Store,
    storage: Storage,
    target: Collection[StudyKey] | str,
    note: Callable[[str], None],
    *,
    weights: bool,
    dry_run: bool,
) -> None:
    """Remove study variants or the trial with this id; `note` receives sentences about it.

    Trials that other studies have stay. `weights` removes only weights and checkpoints of done
    trials. Raises UserError if a trial is running. Runs in a transaction of the store. Files go
    first, and a study's plan last: after a kill, the store still has the study, and `store
    rebuild` finds no trial that has lost its study.
    """
    from orchestrator.report import write_index

    keys = () if isinstance(target, str) else target
    trial_ids, shared = _members(store, keys)
    if isinstance(target, str):
        trial_ids = {target}
    files: Files = storage.trial_files(trial_ids)
    if weights:
        files = _weights(store, files)
        note("These trials keep their results, but cannot be measured again:")
    elif keys:
        note(f"Plan and report to remove: {listed(key.variant for key in keys)}.")
    note(f"To remove: {_extent(files)}.")
    if shared:
        names = listed(sorted({*shared.values()}))
        note(f"To keep: {counted(len(shared), 'trial')} of {names}.")
    if dry_run:
        return
    running = [
        trial
        for trial in store.running()
        if trial.alive and (trial.key in keys or trial.trial_id in trial_ids)
    ]
    if running or any(storage.trial(trial_id).in_use() for trial_id in files):
        raise UserError(f"forget: one of the trials is running. Stop it with `{PROGRAM} stop`.")
    if weights:
        storage.remove(*_paths(files))
        return
    store.forget(keys, trial_ids)
    storage.remove(*map(partial(trial_directory, Path()), files))
    for key in keys:
        plans = (Path(STUDIES, f"{key.variant}{suffix}") for suffix in (SHARED, ".json"))
        storage.remove(Path("reports", key.variant), *plans)
    if (index := storage.folder / "reports" / "index.html").exists():
        write_index(index.parent)


def remove_weights(
    store: Store, plan: Plan, options: RunOptions, note: Callable[[str], None]
) -> None:
    """Remove the weights of a study's done trials that `options.keep_weights` does not keep.

    `best` keeps the trials of the setting with the best mean of the study's metric. Trials of other
    studies keep their weights. `note` receives a sentence about what was removed.
    """
    goal, settings, losses = plan.study.goal, {}, defaultdict(list)
    for row in store.results(plan.key):
        settings[row["trial_id"]] = setting = setting_hash(row["config"])
        if is_number(value := row["metrics"].get(goal.metric)):
            losses[setting].append(goal.loss(value))
    best = min(losses, key=lambda setting: fmean(losses[setting]), default=None)
    trial_ids, _ = _members(store, [plan.key])
    if options.keep_weights == "best":
        trial_ids = {one for one in trial_ids if best not in (None, settings[one])}
    files = _weights(store, options.storage.trial_files(trial_ids))
    if files:
        options.storage.remove(*_paths(files))
        note(f"--keep-weights {options.keep_weights}: removed those of {_extent(files)}.")


def _members(store: Store, keys: Collection[StudyKey]) -> tuple[set[str], dict[str, str]]:
    """Return the trials that only these studies have, and another study of each other trial."""
    pairs = store.studies_of("")
    here = {trial_id for trial_id, key in pairs if key in keys}
    others = {trial_id: key.variant for trial_id, key in pairs if key not in keys}
    return here - others.keys(), {one: others[one] for one in here & others.keys()}


def _weights(store: Store, files: Files) -> Files:
    """Return only the weights and checkpoints of done trials."""
    states = store.states(files)
    return {
        trial_id: chosen
        for trial_id, sizes in files.items()
        if states.get(trial_id) == "done"
        and (chosen := {name: size for name, size in sizes.items() if file_kind(name) in WEIGHTS})
    }


def _paths(files: Files) -> list[Path]:
    return [trial_directory(Path(), one) / name for one, names in files.items() for name in names]


def _extent(files: Files) -> str:
    sizes = [size for of_trial in files.values() for size in of_trial.values()]
    extent = f"{counted(len(sizes), 'file')}, {byte_count(sum(sizes))}"
    return f"{counted(len(files), 'trial')} ({extent})"
