"""What a study's report would say of the trials as they are now, computed in a process of its own.

The statistics need scipy, pandas and matplotlib, which would double what the server holds in
memory. The process gets the store's address, which may hold a password, on its standard input,
where no list of processes shows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.store import StudyKey
from trainables.errors import UserError, last_line

PATIENCE_S = 600
"""Three minutes of a core take ten below a sweep: beside a trial on each core the process has 15
parts in 51 of one, by the kernel's weights of its niceness and of theirs, and more where the kernel
weighs sessions (autogroup)."""
AGAIN_S = 10.0
REST, REST_BESIDE_TRIALS = 10, 50
"""Answers are computed again at most so often, and for so many times what they took of the
processor they are not."""
MOST_STUDIES = 50
NICENESS = 19
"""A sweep on the same machine goes first, as Ray's workers have 15; but for kernels that weigh
sessions (autogroup)."""


@dataclass(frozen=True, kw_only=True)
class AnswerTable:
    """A table with published values in it."""

    caption: str
    head: list[str]
    body: list[list[str]]


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Of a study."""

    headline: str = ""
    """The answer in one sentence; empty where there is none yet."""
    tables: tuple[AnswerTable, ...] = ()
    trouble: str = ""
    """Why there is neither."""


Versions = Mapping[str, tuple[object, ...]]


@dataclass
class _Computed:
    versions: Versions
    answers: Answers
    took_s: float
    """Of the processor: beside a sweep little of it is given to answers."""
    end_s: float

    def is_stale(self, versions: Versions, *, trials_run: bool) -> bool:
        """Whether the trials' ends are others by now, or there was trouble, which may have passed;
        and a time is over that what took long makes longer."""
        rest_s = max(AGAIN_S, self.took_s * (REST_BESIDE_TRIALS if trials_run else REST))
        is_old = self.versions != versions or bool(self.answers.trouble)
        return is_old and time.monotonic() - self.end_s > rest_s


class AnswersBehind:
    """The answers to studies' questions, computed one at a time while pages go on."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._computed: dict[StudyKey, _Computed] = {}
        self._asked: set[StudyKey] = set()
        self._lock = threading.Lock()
        self._one_at_a_time = threading.Lock()

    def get(self, key: StudyKey, versions: Versions, *, trials_run: bool) -> Answers | None:
        """Those computed last, of the trials' ends as their versions tell them; None before the
        first.

        They are computed again where a trial has ended since or there was trouble: seldom while
        trials run, as that takes their time."""
        if not versions:
            return None
        with self._lock:
            last = self._computed.get(key)
            if (
                last is None or last.is_stale(versions, trials_run=trials_run)
            ) and key not in self._asked:
                self._asked.add(key)
                threading.Thread(target=self._compute, args=(key, versions), daemon=True).start()
            return last.answers if last else None

    def _compute(self, key: StudyKey, versions: Versions) -> None:
        with self._one_at_a_time:
            before_s = _children_s()
            answers = Answers(
                trouble=f"the statistics of {key.study} cannot be had: see what `view` printed"
            )
            try:
                answers = compute_answers(self._url, key)
            except UserError as error:
                answers = Answers(trouble=str(error))
            finally:
                self._keep(
                    key, _Computed(versions, answers, _children_s() - before_s, time.monotonic())
                )

    def _keep(self, key: StudyKey, computed: _Computed) -> None:
        with self._lock:
            self._computed[key] = computed
            self._asked.discard(key)
            while len(self._computed) > MOST_STUDIES:
                del self._computed[next(iter(self._computed))]


def _children_s() -> float:
    """What processes that this one started, and that are over, took of the processor."""
    times = os.times()
    return times.children_user + times.children_system


def compute_answers(url: str, key: StudyKey) -> Answers:
    """To the study's questions, from the store at `url`. Raises UserError where they cannot be
    had."""
    asked = json.dumps({"url": url, "key": asdict(key)})
    command = [sys.executable, "-m", "orchestrator.view.answers"]
    here = os.pathsep.join(filter(None, sys.path))
    surroundings = {
        **os.environ,
        "PYTHONPATH": here,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    try:
        ended = subprocess.run(
            command,
            input=asked,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
            env=surroundings,
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"the statistics of {key.study} took over {PATIENCE_S} s: see its report"
        ) from None
    except subprocess.CalledProcessError as error:
        raise UserError(
            f"the statistics of {key.study} cannot be had: {last_line(error.stderr)}"
        ) from error
    answered = json.loads(ended.stdout)
    return Answers(
        headline=answered["headline"],
        tables=tuple(AnswerTable(**table) for table in answered["tables"]),
    )


def _answers(url: str, key: StudyKey) -> Answers:
    """In the process of its own."""
    from orchestrator.analysis import flatten, summarise
    from orchestrator.report import StudyResults, answer, findings
    from orchestrator.store import open_store
    from orchestrator.variants import Variant
    from search_spaces.catalog import load_study

    study = Variant.read(key.overrides).study(load_study(key.study))
    with open_store(url, create=False, check=False, away_s=0) as opened:
        results = flatten(opened.results(key))
        spectra, epochs = opened.spectra(key), opened.epochs_by_trial(key)
    frame = results.frame()
    answers = answer(
        StudyResults(study=study, key=key, frame=frame, spectra=spectra, epochs=epochs)
    )
    sentences = findings(summarise(study, key, results, frame), answers)
    tables = [
        table
        for shown in answers
        if shown.has_published
        for table in shown.section.texts
        if table.body
    ]
    return Answers(
        headline=next(iter(sentences), ""),
        tables=tuple(
            AnswerTable(
                caption=table.caption,
                head=list(table.head),
                body=[[cell.text for cell in row] for row in table.body],
            )
            for table in tables
        ),
    )


def _main() -> int:
    os.nice(NICENESS)
    asked: dict[str, Any] = json.load(sys.stdin)
    try:
        print(json.dumps(asdict(_answers(asked["url"], StudyKey(**asked["key"])))))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main())
