"""The command as a user types it for twelve short trials, with a Ray and a temporary folder of its
own: to be killed.

Nothing in it is scripted. Trials write checkpoints every quarter of a second, since they last about
one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Self

import numpy as np

from orchestrator.store.opening import open_store
from orchestrator.store.records import StudyKey
from orchestrator.store.store import Store
from tests.support.command import ROOT, environment, results_table
from tests.support.scratch import mentioning
from tests.support.victims import Watch, abandoned_shared_memory
from trainables.errors import UserError
from trainables.training.loop import Progress
from trainables.trial_folder.checkpoint import load_tensors
from trainables.trial_folder.outcome import EpochMetrics

STUDY = """from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Study
from trainables.config import GssConfig

def trials(corpus):
    for c in (-2, -1, 0, 1):
        for k in (1.25, 2, 3):
            yield awd_lstm(corpus, GssConfig(c=c, k=k))

STUDY = Study(name="chaos", trials=trials, corner=list, measurements=("perplexity@1", "spectrum@1"))
"""
TUNED = """from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Study
from search_spaces.tuning import Dimension, Tuning
from trainables.config import GssConfig, SoftmaxConfig

def softmax(corpus):
    return awd_lstm(corpus, SoftmaxConfig())

def gss(corpus):
    return awd_lstm(corpus, GssConfig(c=-1.5, k=2.5))

TUNING = Tuning(
    sides={"softmax": softmax, "gss": gss},
    stage1=(Dimension(key="model.dropout_hidden", short="dh", values=(0.0, 0.3)),),
    stage2=(
        Dimension(key="model.dropout_embedding", short="de", values=(0.0, 0.2, 0.4, 0.6, 0.8)),
        Dimension(key="model.dropout_output", short="do", values=(0.0, 0.2, 0.4, 0.6)),
    ),
    seeds=(11, 12),
)
STUDY = Study(name="tuned", tuning=TUNING, analyses=())
"""
LATER = STUDY.replace('"spectrum@1"', '"spectrum@1", "top_k@1"')
"""The same trials, which lack a measurement."""
TRIALS = 12
PLUG_IN = Path(__file__).parent / "kill_at_step"


class Typed:
    """One typed command in a session of its own, with a terminal or without; every text of it with
    its time."""

    def __init__(
        self, words: list[str], environment: dict[str, str], *, terminal: bool = False
    ) -> None:
        self._mine, theirs = pty.openpty() if terminal else os.pipe()
        self.start_s = time.monotonic()
        self._process = subprocess.Popen(
            words,
            cwd=ROOT,
            env=environment,
            stdin=theirs if terminal else subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: _start_as_a_shell_does(terminal),
        )
        os.close(theirs)
        self.pid = self._process.pid
        self.texts: list[tuple[float, str]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # what a terminal answers once nobody has it open
            while text := os.read(self._mine, 65536):
                self.texts.append((time.monotonic(), text.decode(errors="replace")))
        os.close(self._mine)

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.texts)

    def runs(self) -> bool:
        return self._process.poll() is None

    def status(self, within_s: float) -> int | None:
        """As a shell shows it: 137 after a SIGKILL. None where it does not end in time."""
        try:
            status = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(1)  # what it left running may have its output open still
        return status if status >= 0 else 128 - status

    def tracebacks(self) -> list[str]:
        return [f"traceback: {self.text[-2000:]}"] if "Traceback" in self.text else []

    def troubles(self, within_s: float) -> list[str]:
        """What is wrong with a command that nothing disturbs; none where it ends well, and in
        time."""
        status = self.status(within_s)
        what = "hung" if status is None else f"status {status}"
        return [*([] if status == 0 else [f"{what}: {self.text[-500:]}"]), *self.tracebacks()]


def _start_as_a_shell_does(terminal: bool) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_DFL
        )  # as they are not below `nohup`, in which a test may run
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class TypedSweep:
    """Context: a storage and a temporary folder, and the command that is typed for them, as often
    as it takes."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        study: str = STUDY,
        storage: Path | None = None,
        store: str | None = None,
    ) -> None:
        """`store`: the address of one that is not in the storage."""
        folder.mkdir(exist_ok=True)
        self.study = folder / "chaos.py"
        self.study.write_text(study)
        self.storage, self.store = storage or folder / "results", store
        self.options = (*options, *(("--store", store) if store else ()))
        self.watch = Watch(self.storage)
        # Ray's sockets need a short path, and whatever is in this folder afterwards was left
        # behind.
        self.temporary = Path(tempfile.mkdtemp(prefix="c", dir="/tmp"))
        self._since_s = time.time()

    def __enter__(self) -> Self:
        self.watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()
        self.watch.end()
        shutil.rmtree(self.temporary, ignore_errors=True)

    def type(self, *, terminal: bool = False, **variables: str) -> Typed:
        """Type the command; `variables` are of its environment."""
        words = [
            sys.executable,
            str(ROOT / "sweep.py"),
            str(self.study),
            "--scale",
            "smoke",
            "--corpus",
            "pydocs",
        ]
        paths = {"TMPDIR": str(self.temporary), "PYTHONPATH": f"{PLUG_IN}{os.pathsep}{ROOT}"}
        typed = Typed(
            [*words, "--storage", str(self.storage), *self.options],
            {**environment(), "CHAOS_CHECKPOINT_S": "0.25", **paths, **variables},
            terminal=terminal,
        )
        self.watch.add(typed.pid)
        return typed

    def forget(self) -> None:
        """Begin anew: without results."""
        self.kill_all()
        shutil.rmtree(self.storage, ignore_errors=True)
        self.watch.forget()

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[Store, StudyKey]]:
        """The store, and which of its studies this is."""
        with open_store(
            self.store or f"sqlite:///{self.storage}/results.db", create=False
        ) as store:
            yield store, store.studies()[-1].key

    def table(self) -> list[dict[str, str]]:
        """The results with what epochs and spectra came to."""
        rows = results_table(
            self.storage, "chaos", *(("--store", self.store) if self.store else ())
        )
        with self.opened() as (store, key):
            epochs, spectra = store.epochs_by_trial(key), store.spectra(key)
        for row in rows:
            losses = [
                epoch.model_dump(exclude={"seconds"}) for epoch in epochs.get(row["trial_id"], [])
            ]
            row |= {
                "epochs": repr(losses),
                "spectrum": repr(spectra.get(row["trial_id"], np.empty(0)).tolist()),
            }
        return rows

    def checkpoints(self) -> dict[str, list[EpochMetrics]]:
        """Trial id -> the epochs that its newest checkpoint has behind it, of trials that have one
        of some."""
        newest = {
            path.parent.name: path
            for path in sorted(self.storage.glob("trials/*/*/checkpoint-*.safetensors"))
        }
        epochs = {}
        for trial_id, path in newest.items():
            with contextlib.suppress(FileNotFoundError):  # its worker is still at its last breath
                progress = Progress.model_validate(load_tensors(path)[1]["progress"])
                epochs[trial_id] = progress.epochs
        return {trial_id: behind for trial_id, behind in epochs.items() if behind}

    def begun_anew(self, checkpoints: dict[str, list[EpochMetrics]]) -> list[str]:
        """Trials that did not go on from these checkpoints: their epochs took other seconds."""
        with self.opened() as (store, key):
            epochs = store.epochs_by_trial(key)
        return [
            f"began anew: {trial_id}"
            for trial_id, behind in checkpoints.items()
            if [epoch.seconds for epoch in epochs.get(trial_id, [])][: len(behind)]
            != [epoch.seconds for epoch in behind]
        ]

    def claims(self) -> dict[str, int]:
        """Trial id -> how often it was claimed."""
        with self.opened() as (store, key):
            return {row.trial_id: row.attempt for row in store.trials(key)}

    def held(self, drivers: Collection[str]) -> set[str]:
        """The trials that these processes have claimed."""
        with (
            contextlib.suppress(UserError, IndexError),
            self.opened() as (store, key),
        ):  # there is no study yet
            return {
                row.trial_id
                for row in store.trials(key)
                if row.owner and row.owner.split(":")[-2] in drivers
            }
        return set()

    def trained_twice(self) -> list[str]:
        self.watch.living()
        return [trial for trial, results in self.watch.results.items() if len(results) > 1]

    def running(self) -> list[str]:
        """Processes of these commands, once they had a second to end."""
        deadline_s = time.monotonic() + 1
        while True:
            others = mentioning(self.temporary)
            lines = {process.line for process in self.watch.living()} | {
                f"with pid {pid}" for pid in others
            }
            if not lines or time.monotonic() > deadline_s:
                return [f"process {line[:80]}" for line in lines]
            time.sleep(0.1)

    def left_behind(self) -> list[str]:
        """Processes, files in the temporary folder and shared memory."""
        files = [path.name for path in self.temporary.iterdir()]
        return sorted({*self.running(), *files, *abandoned_shared_memory(self._since_s)})

    def kill_all(self) -> None:
        """Whatever lives below any of the commands."""
        for process in self.watch.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    def troubles(self, table: list[dict[str, str]], limit_s: float) -> list[str]:
        """What is wrong once a sweep is over and its command was typed once more; none where all is
        as promised."""
        typed = self.type()
        troubles = typed.troubles(limit_s)
        if not re.search(rf"0 to run, {TRIALS} already done", typed.text):
            troubles.append("lost")
        same = False
        with contextlib.suppress(AssertionError, UserError):  # there may be none
            same = self.table() == table
        troubles += [] if same else ["another table"]
        troubles += [f"trained twice: {trial}" for trial in self.trained_twice()]
        return troubles + [f"left behind: {name}" for name in self.left_behind()]
