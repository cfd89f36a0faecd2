"""Workers without a driver: run a study's trials, and gather what they left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster import RunOptions, scratch_folder
from orchestrator.plan import Plan
from orchestrator.schedule import Recorder
from orchestrator.storage import STUDIES, FolderStorage
from orchestrator.store import LEASE_S, LOST, OPEN, PlannedTrial, open_store
from orchestrator.sweep.commands import Typed, command_line
from orchestrator.sweep.corpus_files import ensure_texts
from orchestrator.sweep.remaining_work import RemainingWork
from orchestrator.sweep.study_file import SHARED, check_name, read_study_file, write_study_file
from orchestrator.watch import Listener
from orchestrator.words import counted
from trainables.errors import GO_ON, UserError
from trainables.trial_folder import DamagedFileError

if TYPE_CHECKING:
    from orchestrator.storage import Storage
    from orchestrator.store import Store

INTERRUPTED = 130
VARIANT = ("--scale", "--corpus", "--model", "--set")


def work_on_study(
    plan: Plan, options: RunOptions, typed: Typed, console: Console, events: Listener
) -> int:
    """Run open trials of the plan next to other workers; return the exit status.

    Writes to the trials' folders only. Raises the errors of `check_workers_can`.
    """
    check_workers_can(plan, options, typed)
    options.storage.check()
    publish_plan(plan, options.storage, typed)
    waiting_ids = ensure_texts(plan, console)
    # The store of this worker alone, which ends with it: it records the attempts.
    with scratch_folder() as folder, open_store(str(folder / "worker.db")) as store:
        store.register(plan.key, plan.trials)
        work = RemainingWork(
            plan=plan,
            options=options,
            typed=typed,
            store=store,
            console=console,
            members=plan.trials,
            retries=[trial for trial in plan.trials if trial.trial_id not in waiting_ids],
            tuner=None,
            logs=Listener(),
            events=events,
        )
        summary = work.run()
        states = [row.state for row in store.trials(plan.key)]
    if summary.interrupted:
        console.print(f"Interrupted: {GO_ON}")
        return INTERRUPTED
    console.print(
        f"{states.count('done')} of {counted(len(states), 'trial')} are done. Gather the results "
        f"with: {report_line(typed)}"
    )
    return 1 if set(LOST).intersection(states) else 0


def report_line(typed: Typed) -> str:
    """Return the command that reports this variant of the study."""
    return command_line("report", typed.study, options=typed.select(*VARIANT, "--storage"))


def check_workers_can(plan: Plan, options: RunOptions, typed: Typed) -> None:
    """Raise UserError for a search or an object store.

    The next trials of a search depend on results in a store.
    """
    if plan.tuning is not None:
        line = command_line(typed.study, options=typed.options)
        raise UserError(f"STUDY: a search needs Ray. Use `{line}` instead.")
    if not isinstance(options.storage, FolderStorage):
        raise UserError("--storage: workers need a folder that all machines share. Name one.")


def publish_plan(plan: Plan, storage: Storage, typed: Typed) -> None:
    """Write the study's plan to the storage, and mark it for `gather`."""
    check_name(storage, plan.key, typed.source)
    path = storage.folder / STUDIES / f"{plan.key.variant}.json"
    with suppress(DamagedFileError):
        if read_study_file(path).trials == list(plan.trials) and path.with_suffix(SHARED).exists():
            return
    write_study_file(storage, plan.key, datetime.now(UTC), plan.trials, file=typed.source)
    path.with_suffix(SHARED).touch()


def shared_studies(storage: Storage) -> list[Path]:
    """Return the files of studies that workers without a driver run or have run."""
    return [path.with_suffix(".json") for path in storage.folder.glob(f"{STUDIES}/*{SHARED}")]


def gather(store: Store, storage: Storage, note: Callable[[str], None]) -> None:
    """Record plans, results, failures and running trials of workers without a driver."""
    open_trials, workers = list[PlannedTrial](), dict[str, str]()
    for path in shared_studies(storage):
        try:
            content = read_study_file(path)
        except DamagedFileError as error:
            note(f"{error}. Run the study again.")
            continue
        ids = [trial.trial_id for trial in content.trials]
        if [row.trial_id for row in store.trials(content.key)] != ids:
            store.register(content.key, content.trials, planned_at=content.planned_at)
        states = store.states(ids)
        open_trials += [trial for trial in content.trials if states[trial.trial_id] in OPEN]
    for trial in open_trials:
        if worker := storage.trial(trial.trial_id).worker():
            workers[trial.trial_id] = worker
    claims = {row.trial_id: row.owner for row in store.running() if not row.has_driver}
    for trial_id, worker in claims.items():
        if workers.get(trial_id) != worker:
            store.release(worker, [trial_id])
    Recorder(store, storage, run_id=None).recover(open_trials, note=note)
    for trial_id, worker in workers.items():
        if claims.get(trial_id) == worker:
            store.renew(worker, LEASE_S)
        else:
            store.claim([trial_id], owner=worker, lease_s=LEASE_S)
