"""Two processes write one report folder: two drivers that share a study finish together."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path

import pytest

from tests.support.synthetic_results import make_results, report_on

REPOSITORY = Path(__file__).parents[3]
ENDS = {
    ".html": b"</html>",
    ".svg": b"</svg>\n",
    ".png": b"IEND\xaeB`\x82",
    ".pdf": b"%%EOF\n",
    ".csv": b"\n",
    ".json": b"}",
}
"""What a file ends with that is whole."""
FILES = 2 + 5 * 3 + 4
"""The page and its entry for the index, five figures in three formats, four tables."""


def start(folder: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.reporting_program", str(folder), str(number), "2"]
    return subprocess.Popen(
        command,
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def broken(folder: Path) -> list[str]:
    """The names of files that are not whole."""
    found = []
    for path in folder.iterdir():
        if path.suffix in ENDS and not path.read_bytes().endswith(ENDS[path.suffix]):
            found.append(path.name)
        if path.suffix == ".csv" and path.name == "trials.csv" and path.read_bytes().count(b"\n") != 73:
            found.append(path.name)
    return found


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Two that write reports into the test's folder, ready to begin."""
    started = [start(tmp_path, number) for number in range(2)]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def test_neither_fails_and_no_file_is_ever_seen_half_written(
    tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    with ExitStack() as reader:
        opened: dict[str, tuple[BufferedReader, bytes]] = {}
        while any(process.poll() is None for process in processes):
            assert broken(tmp_path) == []
            for path in tmp_path.glob("[!.]*"):
                if path.name not in opened:
                    file = reader.enter_context(path.open("rb"))
                    opened[path.name] = file, file.read()
            time.sleep(0.01)
        for name, (file, content) in opened.items():
            file.seek(0)
            assert file.read() == content, f"who had opened {name} still has what it was"
        assert len(opened) == FILES
    for process in processes:
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (0, "")
    assert len(list(tmp_path.iterdir())) == FILES, "nothing unfinished is left"
    assert broken(tmp_path) == []


def test_the_next_report_puts_right_what_two_have_mixed(tmp_path: Path) -> None:
    mixed, alone = tmp_path / "mixed", tmp_path / "alone"
    for seed, out in ((1, mixed), (2, alone)):
        rows, spectra = make_results(columns=50, rng_seed=seed)
        report_on(rows, out, spectra=spectra)
    for path in alone.glob("*.svg"):  # of the other's figures, as where its write came last
        (mixed / path.name).write_bytes(path.read_bytes())
    rows, spectra = make_results(columns=50, rng_seed=2)
    report_on(rows, mixed, spectra=spectra)
    for path in alone.iterdir():
        assert (mixed / path.name).read_bytes() == path.read_bytes(), path.name
