"""What a study's report would say of the trials as they are now, computed in a process of its own.

The statistics need scipy, pandas and matplotlib, which would double what the server holds in memory. The process gets
the store's address, which may hold a password, on its standard input, where no list of processes shows it.
"""

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

PATIENCE_S = 120
AGAIN_S = 10.0
"""Answers are found again at most so often, and take at most a tenth of the time."""
MOST_STUDIES = 50
NICENESS = 10
"""A sweep on the same machine goes first."""


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
class _Found:
    versions: Versions
    answers: Answers
    found_s: float


class AnswersBehind:
    """The answers to studies' questions, computed one at a time while pages go on."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._found: dict[StudyKey, _Found] = {}
        self._asked: set[StudyKey] = set()
        self._lock = threading.Lock()
        self._one_at_a_time = threading.Lock()

    def get(self, key: StudyKey, versions: Versions) -> Answers | None:
        """Those found last; has them found again where the versions are others by now, and some time is over."""
        with self._lock:
            found = self._found.get(key)
            stale = found is None or (found.versions != versions and time.monotonic() - found.found_s > AGAIN_S)
            if stale and key not in self._asked:
                self._asked.add(key)
                threading.Thread(target=self._find, args=(key, versions), daemon=True).start()
            return found.answers if found else None

    def _find(self, key: StudyKey, versions: Versions) -> None:
        with self._one_at_a_time:
            start = time.monotonic()
            try:
                answers = find_answers(self._url, key)
            except UserError as error:
                answers = Answers(trouble=str(error))
            now = time.monotonic()
        with self._lock:
            # What took long is not done again soon.
            self._found[key] = _Found(versions, answers, now + 10 * (now - start))
            self._asked.discard(key)
            while len(self._found) > MOST_STUDIES:
                del self._found[next(iter(self._found))]


def find_answers(url: str, key: StudyKey) -> Answers:
    """To the study's questions, from the store at `url`. Raises UserError where they cannot be had."""
    asked = json.dumps({"url": url, "key": asdict(key)})
    command = [sys.executable, "-m", "orchestrator.view.answers"]
    here = os.pathsep.join(filter(None, sys.path))
    surroundings = {**os.environ, "PYTHONPATH": here, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=PATIENCE_S, check=True, env=surroundings
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"the statistics of {key.study} took over {PATIENCE_S} s: see its report") from None
    except subprocess.CalledProcessError as error:
        raise UserError(f"the statistics of {key.study} cannot be had: {last_line(error.stderr)}") from error
    answered = json.loads(ended.stdout)
    return Answers(headline=answered["headline"], tables=tuple(AnswerTable(**table) for table in answered["tables"]))


def _answers(url: str, key: StudyKey) -> Answers:
    """In the process of its own."""
    from orchestrator.analysis import flatten, summarise
    from orchestrator.report import StudyResults, answer, findings
    from orchestrator.store import open_store
    from search_spaces.catalog import load_study

    study = load_study(key.study)
    with open_store(url, create=False, away_s=0) as opened:
        results = flatten(opened.results(key))
        spectra, epochs = opened.spectra(key), opened.epochs_by_trial(key)
    frame = results.frame()
    answers = answer(StudyResults(study=study, key=key, frame=frame, spectra=spectra, epochs=epochs))
    sentences = findings(summarise(study, key, results, frame), answers)
    tables = [table for shown in answers if shown.has_published for table in shown.section.tables if table.body]
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
