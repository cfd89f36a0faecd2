"""The command as a user types it for twelve short trials, with a Ray and a temporary folder of its own: to be killed.

Nothing in it is scripted. Trials write checkpoints every quarter of a second, since they last about one.
"""

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
from pathlib import Path
from typing import Self

from tests.support.command import ROOT, environment, results_table
from tests.support.victims import Watch, abandoned_shared_memory, naming

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
MOST_COMMANDS = 4
PLUG_IN = Path(__file__).parent / "kill_at_step"


class Typed:
    """One typed command in a session of its own, with a terminal or without; every text of it with its time."""

    def __init__(self, words: list[str], environment: dict[str, str], *, terminal: bool = False) -> None:
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
            preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if terminal else None,
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


class TypedSweep:
    """Context: a storage and a temporary folder, and the command that is typed for them, as often as it takes."""

    def __init__(
        self, folder: Path, *options: str, study: str = STUDY, storage: Path | None = None, store: str | None = None
    ) -> None:
        """`store`: the address of one that is not in the storage."""
        folder.mkdir(exist_ok=True)
        self.study = folder / "chaos.py"
        self.study.write_text(study)
        self.storage, self.store = storage or folder / "results", store
        self.options = (*options, *(("--store", store) if store else ()))
        self.watch = Watch(self.storage)
        # Ray's sockets need a short path, and whatever is in this folder afterwards was left behind.
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
        words = [sys.executable, str(ROOT / "sweep.py"), str(self.study), "--scale", "smoke", "--corpus", "pydocs"]
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
        self.watch.results.clear()

    def finish(self, limit_s: float) -> int:
        """Type the command until it ends well; how often that took. Raises AssertionError."""
        for count in range(1, MOST_COMMANDS + 1):
            typed = self.type()
            status = typed.status(limit_s)
            assert status is not None, f"hung, typed again: {typed.text[-500:]}"
            assert "Traceback" not in typed.text, typed.text[-2000:]
            if status == 0:
                return count
        raise AssertionError(f"did not end well in {MOST_COMMANDS} commands: {typed.text[-500:]}")

    def table(self) -> list[dict[str, str]]:
        return results_table(self.storage, "chaos", *(("--store", self.store) if self.store else ()))

    def trained_twice(self) -> list[str]:
        self.watch.living()
        return [trial for trial, results in self.watch.results.items() if len(results) > 1]

    def running(self) -> list[str]:
        """Processes of these commands, once they had a second to end."""
        deadline_s = time.monotonic() + 1
        while True:
            lines = {process.line for process in self.watch.living()} | set(naming(self.temporary))
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
        """What is wrong once a sweep is over and its command was typed once more; none where all is as promised."""
        typed = self.type()
        troubles = [] if typed.status(limit_s) == 0 else [f"typed when all was done: {typed.text[-300:]}"]
        if not re.search(rf"0 to run, {TRIALS} already done", typed.text):
            troubles.append("lost")
        same = False
        with contextlib.suppress(AssertionError):  # there may be none
            same = self.table() == table
        troubles += [] if same else ["another table"]
        troubles += [f"trained twice: {trial}" for trial in self.trained_twice()]
        return troubles + [f"left behind: {name}" for name in self.left_behind()]
