"""A SQLite store whose files are damaged anywhere: right numbers or a sentence, never a traceback
or a wrong number."""

from __future__ import annotations

import io
import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest

from orchestrator.command import main
from orchestrator.store.opening import open_store, upgrade
from orchestrator.store.records import StudyKey
from orchestrator.store.store import Store
from tests.orchestrator.store.test_old_stores import old_store
from tests.support.store_rows import RUN
from trainables.errors import UserError

PAGE = 4096
Read = Callable[[Path], tuple[int, str]]
Answers = dict[str, list[str]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store as a command left it that was killed: its last transactions are in its log. `old.db`
    is a copy from before them."""
    folder = tmp_path_factory.mktemp("template")
    url = old_store(4, folder)
    upgrade(url)
    path = folder / "results.db"
    shutil.copy(path, folder / "old.db")
    with open_store(url) as store:
        (summary,) = store.studies()
        for number, row in enumerate(store.trials(summary.key)):
            store.add_measurement(
                row.trial_id, f"later@{number}", {f"hits_{number}": 1 / 3}, run_id=1
            )
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", folder / f"killed.db{suffix}")
    return folder


def run(path: Path, *command: str) -> tuple[int, str]:
    """Run a command on a store; returns its status, and its output, or its sentence where it
    refuses."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        status = main([*command, "--store", str(path)])
    said = errors.getvalue()
    assert "Traceback" not in said
    if status == 2:
        assert said.startswith("error: ") and said.count("\n") == 1 and out.getvalue() == "", said
    return status, said if status == 2 else out.getvalue()


def report(path: Path) -> tuple[int, str]:
    """Every number of a report, as it exports them."""
    folder = path.parent / "report"
    status, said = run(path, "report", "gss_grid", "--out", str(folder))
    return status, said if status == 2 else "".join(
        file.read_text() for file in sorted(folder.rglob("*.csv"))
    )


def from_store(read: Callable[[Store, StudyKey], object]) -> Read:
    """What a report reads beside the results, of every study."""

    def read_all_studies(path: Path) -> tuple[int, str]:
        try:
            with open_store(str(path), create=False) as store:
                return 0, repr([read(store, summary.key) for summary in store.studies()])
        except UserError as error:
            return 2, str(error)

    return read_all_studies


READS: dict[str, Read] = {
    "results": lambda path: run(path, "results", "gss_grid", "--format", "json"),
    "status": lambda path: run(path, "status", "--format", "json"),
    "epochs": from_store(lambda store, key: store.epochs_by_trial(key)),
    "spectra": from_store(
        lambda store, key: {name: values.tobytes() for name, values in store.spectra(key).items()}
    ),
    "environments": from_store(lambda store, key: store.environments(key)),
}


def moments(template: Path) -> Iterator[Path]:
    """The store after each of the transactions in the log, and before the first."""
    path = template / "right.db"
    log = (template / "killed.db-wal").read_bytes()
    for end in range(32, len(log) + 1, PAGE + 24):
        shutil.copy(template / "killed.db", path)
        Path(f"{path}-wal").write_bytes(log[:end])
        yield path


@pytest.fixture(scope="module")
def right(template: Path) -> Answers:
    """What the reads may answer."""
    answers: Answers = {name: [] for name in READS}
    for path in moments(template):
        for name, read in READS.items():
            status, said = read(path)
            assert status == 0, said
            if said not in answers[name]:
                answers[name].append(said)
    assert len(answers["results"]) == 5, "four measurements came later, one after the other"
    return answers


@pytest.fixture(scope="module")
def right_reports(template: Path) -> list[tuple[int, str]]:
    """Of every answer to `results`."""
    reports: dict[str, tuple[int, str]] = {}
    for path in moments(template):
        _, results = READS["results"](path)
        if results not in reports:
            reports[results] = report(path)
    return list(reports.values())


def flip(file: Path, start: int, size: int, draw: random.Random) -> None:
    """Change a bit, some bytes, or all of a block."""
    content = bytearray(file.read_bytes())
    kind = draw.choice(["bit", "bytes", "zeros"])
    at = start + draw.randrange(size)
    if kind == "bit":
        content[at] ^= 1 << draw.randrange(8)
    elif kind == "bytes":
        content[at : at + 16] = draw.randbytes(len(content[at : at + 16]))
    else:
        content[start : start + size] = bytes(size)
    file.write_bytes(content)


def a_page(path: Path, number: int, draw: random.Random) -> None:
    start = PAGE * (number % (path.stat().st_size // PAGE))
    flip(path, start, PAGE, draw)


def the_log(path: Path, _number: int, draw: random.Random) -> None:
    log = Path(f"{path}-wal")
    flip(log, 0, log.stat().st_size, draw)


def truncated(path: Path, number: int, draw: random.Random) -> None:
    file = Path(f"{path}-wal") if number % 2 else path
    with file.open("r+b") as content:
        content.truncate(draw.randrange(file.stat().st_size))


def without_its_log(path: Path, _number: int, _draw: random.Random) -> None:
    Path(f"{path}-wal").unlink()


def an_old_copy(path: Path, number: int, _draw: random.Random) -> None:
    """Beside the log of the newer one, or alone."""
    shutil.copy(path.with_name("old.db"), path)
    if number % 2:
        Path(f"{path}-wal").unlink()


@pytest.mark.chaos(2, 100)
@pytest.mark.parametrize("change", [a_page, the_log, truncated, without_its_log, an_old_copy])
def test_numbers_are_right_or_refused_in_a_sentence(
    request: pytest.FixtureRequest,
    template: Path,
    right: Answers,
    tmp_path: Path,
    rounds: int,
    change: Callable[[Path, int, random.Random], None],
) -> None:
    for number in range(rounds):
        seed = random.randrange(2**32)
        print(f"seed {seed} of round {number}")
        folder = tmp_path / f"round-{number}"
        shutil.copytree(template, folder)
        path = folder / "killed.db"
        change(path, number, random.Random(seed))
        read_all(path, right)
        go_on(path)
        read_all(path, right)
        if number % 20 == 19:  # takes seconds
            answer = report(path)
            assert answer[0] == 2 or answer in request.getfixturevalue("right_reports")
        assert run(path, "store", "check")[0] in (0, 1, 2)
        if run(path, "store", "check", "--repair")[0] == 0:
            assert run(path, "store", "check")[0] == 0
            check_rows(path, right)
        shutil.rmtree(folder)


def read_all(path: Path, right: Answers) -> None:
    for name, read in READS.items():
        status, said = read(path)
        assert status == 2 or said in right[name]


def go_on(path: Path) -> None:
    """What the same command begins with, up to the first trouble."""
    with suppress(UserError), open_store(str(path)) as store:
        for summary in store.studies():
            trials = [row.planned() for row in store.trials(summary.key)]
            store.register(summary.key, trials)
            assert (
                store.claim([trial.trial_id for trial in trials], owner="a driver", lease_s=60)
                == {}
            )
            store.begin_run(RUN)


def check_rows(path: Path, right: Answers) -> None:
    """After a repair, a trial is as it was at some moment, or planned anew."""
    status, said = READS["results"](path)
    rows = [row for answer in right["results"] for row in numbers(answer)]
    if status == 0:
        assert all(row in rows or row["state"] == "planned" for row in numbers(said))


def numbers(answer: str) -> list[dict[str, Any]]:
    """The rows of a table, each without the columns that only others have."""
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in json.loads(answer)
    ]
