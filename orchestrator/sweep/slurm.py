"""Workers as a Slurm job array: the script, and its submission."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import psutil
from rich.console import Console

import orchestrator
from orchestrator.cluster import RunOptions
from orchestrator.forecast import estimate
from orchestrator.plan import Plan
from orchestrator.storage import STUDIES, FolderStorage
from orchestrator.sweep.commands import Typed, command_line, option_words
from orchestrator.sweep.corpus_files import ensure_texts
from orchestrator.sweep.shared_work import publish_plan, report_line
from orchestrator.words import counted
from trainables.errors import UserError, first_line
from trainables.trial_folder import DamagedFileError, TrialFolder

STOP_S = 60
"""A worker stops this long before its job's time limit."""
LOCAL_TYPES = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay")
"""Types of file systems that other machines usually do not see."""
PROBE_S = 10
WORKER_GB = 1
"""Memory of a worker in addition to its trial's."""

SCRIPT = """#!/bin/bash
{directives}
# Each task is a worker: it takes open trials of the study until none is left.
# To see the results at any time: {report}
if [ ! -e {plan} ]; then
  echo "error: $(hostname) does not see {plan}: name a shared folder with --storage." >&2
  exit 2
fi
late=
trap 'late=1; scancel --signal=TERM "$SLURM_JOB_ID"' USR1
srun --kill-on-bad-exit=0 --cpus-per-task={threads} {work} &
workers=$!
wait "$workers"; status=$?
while kill -0 "$workers" 2>/dev/null; do wait "$workers"; status=$?; done
{requeue}exit "$status"
"""
REQUEUE = """if [ "$late" ]; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
"""


@dataclass(frozen=True, kw_only=True)
class JobArray:
    """Values of the options of `slurm`."""

    array: int
    gpus: int | None
    partition: str | None
    time: str | None
    account: str | None
    sbatch: Sequence[str] | None
    """Further options of sbatch, for example "--constraint=a100"."""
    requeue: bool
    script: Path | None


def submit(plan: Plan, options: RunOptions, typed: Typed, jobs: JobArray, console: Console) -> None:
    """Submit the study's workers as a job array, or write its script to `jobs.script`.

    The study must pass `check_workers_can`. Raises UserError if sbatch is missing or refuses the
    job, or if the jobs cannot reach the storage.
    """
    options.storage.check()
    ensure_texts(plan, console)
    publish_plan(plan, options.storage, typed)
    folders = [options.storage.trial(trial.trial_id) for trial in plan.trials]
    open_count = sum(map(_is_open, folders))
    if not open_count:
        console.print(f"All {counted(plan.total, 'trial')} have ended. There is nothing to submit.")
        return
    jobs = replace(jobs, array=min(jobs.array, open_count))
    content = _script(plan, options, typed, jobs)
    if jobs.script is not None:
        try:
            jobs.script.write_text(content)
        except OSError as error:
            raise UserError(
                f"--script: {jobs.script} cannot be written ({error.strerror}). Name another file."
            ) from error
        console.print(f"Wrote {jobs.script}. Submit it with: sbatch {jobs.script}")
        return
    if shutil.which("sbatch") is None:
        raise UserError(
            "slurm: this machine has no sbatch. Run the command on a login node, or write the "
            "script with --script FILE."
        )
    _check_shared(options.storage.folder, jobs)
    answer = subprocess.run(
        ["sbatch", "--parsable"], input=content, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        reason = first_line(answer.stderr).removeprefix("sbatch: error: ")
        raise UserError(f"slurm: sbatch refused the job ({reason}). Change the options.")
    job = answer.stdout.split(";")[0].strip()
    console.print(
        f"Submitted job {job} with {counted(jobs.array, 'worker')} for "
        f"{counted(open_count, 'trial')}. Logs: {options.storage.folder / 'slurm'}\n"
        f"Progress: {command_line('status', options=typed.select('--storage'))}\n"
        f"Results: {report_line(typed)}"
    )


def _is_open(folder: TrialFolder) -> bool:
    try:
        result = folder.result()
    except DamagedFileError:
        return True
    return result is None or result[0].state == "pruned"


def _script(plan: Plan, options: RunOptions, typed: Typed, jobs: JobArray) -> str:
    folder, threads = options.storage.folder, options.runtime.threads
    logs = folder / "slurm"
    logs.mkdir(exist_ok=True)
    gpus = jobs.gpus if jobs.gpus is not None else int(options.gpus_per_trial > 0)
    per_trial = ["--gpus-per-trial", "1" if gpus else "0"]
    words = [typed.study, *option_words(typed.options), *per_trial]
    program = [sys.executable, str(Path(orchestrator.__file__).parents[1] / "sweep.py")]
    directives = {
        "job-name": plan.key.variant,
        "array": f"1-{jobs.array}",
        "nodes": "1",
        "ntasks": str(max(1, gpus)),
        "cpus-per-task": str(threads),
        "mem": _memory(plan, max(1, gpus)),
        "gpus-per-task": "1" if gpus else None,
        "partition": jobs.partition,
        "time": jobs.time,
        "account": jobs.account,
        "chdir": str(Path.cwd()),
        "output": f"{str(logs).replace('%', '%%')}/%x-%A_%a.log",
        "open-mode": "append",
        "signal": f"B:USR1@{STOP_S}",
    }
    lines = [f'"--{name}={value}"' for name, value in directives.items() if value is not None]
    return SCRIPT.format(
        directives="\n".join(f"#SBATCH {line}" for line in [*lines, *(jobs.sbatch or ())]),
        report=report_line(typed),
        plan=shlex.quote(str(folder / STUDIES / f"{plan.key.variant}.json")),
        threads=threads,
        work=shlex.join([*program, "work", *words]),
        requeue=REQUEUE if jobs.requeue else "",
    )


def _memory(plan: Plan, workers: int) -> str | None:
    """Return the memory that this number of workers is estimated to need; None if unknown."""
    trial_gb = max(estimate(trial.validated, plan.corpus).memory_gb for trial in plan.trials)
    return f"{ceil(workers * (trial_gb + WORKER_GB))}G" if trial_gb else None


def _check_shared(folder: Path, jobs: JobArray) -> None:
    """Ask a node for the storage folder, if its file system is of a local type."""
    mounts = {mount.mountpoint: mount.fstype for mount in psutil.disk_partitions(all=True)}
    kind = next(
        (mounts[str(path)] for path in (folder, *folder.parents) if str(path) in mounts), ""
    )
    if kind not in LOCAL_TYPES:
        return
    where = [f"--partition={jobs.partition}"] if jobs.partition else []
    where += [f"--account={jobs.account}"] if jobs.account else []
    with FolderStorage(folder).marked() as marker:
        look = f"test -e {shlex.quote(str(folder / marker))} && echo seen || echo missing"
        answer = subprocess.run(
            ["srun", f"--immediate={PROBE_S}", "--ntasks=1", *where, "sh", "-c", look],
            capture_output=True,
            text=True,
            check=False,
        )
    if "missing" in answer.stdout:
        raise UserError(
            f"--storage: the cluster's nodes do not see {folder} ({kind} of "
            f"{socket.gethostname()}). Name a folder that all nodes share."
        )


def worker_name() -> str:
    """Return a name for this process as a worker: its Slurm job or process id, and its host."""
    job = os.environ.get("SLURM_ARRAY_JOB_ID")
    task = os.environ.get("SLURM_ARRAY_TASK_ID")
    single = os.environ.get("SLURM_JOB_ID")
    name = f"job {job}_{task}" if job else f"job {single}" if single else f"process {os.getpid()}"
    rank = os.environ.get("SLURM_LOCALID", "0")
    return f"{name}{f' task {rank}' if rank != '0' else ''} on {socket.gethostname()}"
