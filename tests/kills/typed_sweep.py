"""A real sweep of eight trials that tests kill, repeat and compare with an undisturbed sweep."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from orchestrator.store import Store, StudyKey, open_store
from tests.kills.typed import Typed
from tests.support.command import ROOT, environment, results_table
from tests.support.scratch import mentioning
from trainables.errors import UserError
from trainables.trial_folder import load_tensors

STUDY = """from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Study
from trainables.config import GssConfig

def trials(corpus):
    for c in (-2, -1, 0, 1):
        for k in (1.25, 3):
            yield awd_lstm(corpus, GssConfig(c=c, k=k))

STUDY = Study(name="chaos", trials=trials, corner=list, measurements=("perplexity@1", "spectrum@1"))
"""
LATER = STUDY.replace('"spectrum@1"', '"spectrum@1", "top_k@1"')
EPOCHS = 4 if "--chaos" in sys.argv else 2
OPTIONS = ("--set", f"training.epochs={EPOCHS}")
SEED = int(os.environ.get("CHAOS_SEED", random.randrange(10**6)))
"""Seed of the random tests. A failing test prints it, so that CHAOS_SEED can repeat the test."""
QUIET_S, MOST_SLOWNESS = 10.0, 4.0
"""A sweep takes `QUIET_S` seconds on an idle host. Limits grow at most `MOST_SLOWNESS` times."""
LIMIT_S = 90.0
"""Seconds after which a killed command counts as hung on an idle host."""
PLUG_IN = Path(__file__).parent / "kill_at_step"
BY_COMMAND_LINE: dict[str, Callable[[str], bool]] = {
    "worker": lambda line: line.startswith("ray::") and "Agent" not in line,
    "raylet": lambda line: line.split()[0].endswith("/raylet"),
    "GCS": lambda line: line.split()[0].endswith("/gcs_server"),
    "RuntimeEnvAgent": lambda line: line.startswith("ray::RuntimeEnvAgent"),
    "DashboardAgent": lambda line: line.startswith("ray::DashboardAgent"),
    "dashboard": lambda line: "/ray/dashboard/dashboard.py " in line,
}
VICTIMS = ("driver", "guard", "process group", *BY_COMMAND_LINE, "everything")


@dataclass
class Round:
    kind: str
    seconds: float | None = None
    """Seconds from the kill or signal to the command's end, or None if the command hung."""
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    storage: Path
    table: list[dict[str, str]]
    seconds: float

    @property
    def slowness(self) -> float:
        return min(max(1.0, self.seconds / QUIET_S), MOST_SLOWNESS)

    @property
    def limit_s(self) -> float:
        return LIMIT_S * self.slowness


class TypedSweep:
    ARGUMENTS: tuple[str, ...] = ("--scale", "smoke", "--corpus", "pydocs")
    TRIALS = 8

    def __init__(
        self,
        folder: Path,
        *options: str,
        study: str = STUDY,
        storage: Path | None = None,
        store: str | None = None,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.study = folder / "chaos.py"
        self.study.write_text(study)
        self.storage, self.store = storage or folder / "results", store
        self.options = (*options, *(("--store", store) if store else ()))
        self.prefix: tuple[str, ...] = ()
        """Words before the command, of a program that starts it."""
        self.trained_twice: set[str] = set()
        self._sealed: dict[Path, tuple[int, int]] = {}
        # Ray's sockets need a short path, and files that remain in this folder are leftovers.
        self.temporary = Path(tempfile.mkdtemp(prefix="c", dir="/tmp"))
        self._since_s = time.time()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()
        shutil.rmtree(self.temporary, ignore_errors=True)

    def type(
        self, *options: str, command: str = "run", terminal: bool = False, **variables: str
    ) -> Typed:
        self._compare_results()
        words = [*self.prefix, sys.executable, str(ROOT / "sweep.py"), command, str(self.study),
                 *self.ARGUMENTS, "--storage", str(self.storage), *self.options]  # fmt: skip
        paths = {"TMPDIR": str(self.temporary), "PYTHONPATH": f"{PLUG_IN}{os.pathsep}{ROOT}"}
        all_variables = {**environment(), "CHAOS_CHECKPOINT_S": "0.25", **paths, **variables}
        return Typed([*words, *options], all_variables, terminal=terminal)

    def forget(self) -> None:
        self.kill_all()
        shutil.rmtree(self.storage, ignore_errors=True)
        self._sealed.clear()

    @contextmanager
    def opened(self) -> Iterator[tuple[Store, StudyKey]]:
        url = self.store or f"sqlite:///{self.storage}/results.db"
        with open_store(url, create=False) as store:
            yield store, store.studies()[-1].key

    def table(self) -> list[dict[str, str]]:
        options = ("--store", self.store) if self.store else ()
        rows = results_table(self.storage, "chaos", *options)
        with self.opened() as (store, key):
            epochs, spectra = store.epochs_by_trial(key), store.spectra(key)
        for row in rows:
            behind = epochs.get(row["trial_id"], ())
            row["epochs"] = repr([epoch.model_dump(exclude={"seconds"}) for epoch in behind])
            row["spectrum"] = repr(list(map(float, spectra.get(row["trial_id"], ()))))
        return rows

    def checkpoints(self) -> dict[Path, list[float]]:
        seconds_by_folder = {}
        for path in sorted(self.storage.glob("trials/*/*/checkpoint-*.safetensors")):
            with suppress(FileNotFoundError):  # its worker is still running
                epochs = load_tensors(path)[1]["progress"]["epochs"]
                seconds_by_folder[path.parent] = [epoch["seconds"] for epoch in epochs]
        return {folder: seconds for folder, seconds in seconds_by_folder.items() if seconds}

    def restarted_trials(self, checkpoints: dict[Path, list[float]]) -> list[str]:
        """Return the trials that did not resume from `checkpoints`.

        If an epoch is trained again, its duration differs from the one in the checkpoint.
        """
        results = {
            folder: json.loads((folder / "result.json").read_text()) for folder in checkpoints
        }
        return [
            f"began anew: {folder.name}"
            for folder, seconds in checkpoints.items()
            if [epoch["seconds"] for epoch in results[folder]["epochs"]][: len(seconds)] != seconds
        ]

    def claims(self) -> dict[str, int]:
        with self.opened() as (store, key):
            return {row.trial_id: row.attempt for row in store.trials(key)}

    def claimed_trials(self, pids: Collection[int]) -> set[str]:
        with suppress(UserError, IndexError), self.opened() as (store, key):  # no study yet
            owners = {row.trial_id: row.owner for row in store.trials(key) if row.owner}
            return {trial for trial, owner in owners.items() if int(owner.split(":")[-2]) in pids}
        return set()

    def _compare_results(self) -> None:
        for path in self.storage.glob("trials/*/*/result.json"):
            stat = path.stat()
            now = (stat.st_ino, stat.st_mtime_ns)
            if self._sealed.setdefault(path, now) != now:
                self.trained_twice.add(path.parent.name)

    def alive(self, victim: str, typed: Typed) -> list[int]:
        lines = mentioning(self.temporary)
        runs = typed.runs()
        if victim in BY_COMMAND_LINE:
            return [pid for pid, line in lines.items() if line and BY_COMMAND_LINE[victim](line)]
        if victim in ("process group", "everything"):
            return list(lines) if runs else []
        drivers = list[int]()
        with suppress(OSError):  # the command has ended
            children = Path(f"/proc/{typed.pid}/task/{typed.pid}/children").read_text().split()
            drivers = [pid for pid in map(int, children) if "sweep.py" in lines.get(pid, "")]
        if victim == "guard":
            return [typed.pid] if drivers else []
        return drivers or ([typed.pid] if runs else [])

    def kill(self, victim: str, typed: Typed, chance: random.Random) -> bool:
        self._compare_results()
        pids = self.alive(victim, typed)
        if victim == "process group" and pids:
            os.killpg(typed.pid, signal.SIGKILL)
        else:
            kill(chance.sample(pids, len(pids) if victim == "everything" else min(1, len(pids))))
        return bool(pids)

    def kill_all(self) -> None:
        kill(mentioning(self.temporary))

    def running(self) -> list[str]:
        deadline_s = time.monotonic() + 1
        while (lines := mentioning(self.temporary)) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        return [f"process {line[:80]}" for line in lines.values()]

    def left_behind(self) -> list[str]:
        files = [path.name for path in self.temporary.iterdir()]
        return [*self.running(), *files, *abandoned_shared_memory(self._since_s)]

    def troubles(self, table: list[dict[str, str]], limit_s: float) -> list[str]:
        typed = self.type()
        troubles = typed.troubles(limit_s)
        if f"0 to run, {self.TRIALS} already done" not in typed.text:
            troubles.append("lost")
        self._compare_results()
        try:
            troubles += [] if self.table() == table else ["another table"]
        except (AssertionError, UserError):
            troubles.append("no table")
        troubles += [f"trained twice: {trial}" for trial in self.trained_twice]
        return troubles + [f"left behind: {name}" for name in self.left_behind()]

    def judge(self, part: Round, typed: Typed, undisturbed: Undisturbed) -> None:
        killed_s = time.monotonic()
        status = typed.status(undisturbed.limit_s)
        if status is None:
            part.troubles.append(f"hung: {typed.text[-300:]}")
            self.kill_all()
        else:
            part.seconds = time.monotonic() - killed_s
        part.troubles += typed.tracebacks()
        checkpoints: dict[Path, list[float]] = {}
        if status != 0:
            checkpoints = self.checkpoints()
            part.troubles += self.type().troubles(undisturbed.limit_s)
        part.troubles += self.troubles(undisturbed.table, undisturbed.limit_s)
        if not part.troubles:
            part.troubles += self.restarted_trials(checkpoints)


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def abandoned_shared_memory(since_s: float) -> list[str]:
    new = [str(path) for path in Path("/dev/shm").iterdir() if path.lstat().st_ctime > since_s]
    maps = ""
    for path in Path("/proc").glob("[0-9]*/maps") if new else ():
        with suppress(OSError):
            maps += path.read_text()
    return [path for path in new if path not in maps]


def undisturbed_sweep(
    folder: Path, *, study: str = STUDY, storage: Path | None = None
) -> Undisturbed:
    with TypedSweep(folder, *OPTIONS, study=study, storage=storage) as sweep:
        return run_undisturbed(sweep)


def run_undisturbed(sweep: TypedSweep) -> Undisturbed:
    typed = sweep.type()
    assert typed.status(600) == 0, typed.text
    seconds = time.monotonic() - typed.start_s
    return Undisturbed(storage=sweep.storage, table=sweep.table(), seconds=seconds)
