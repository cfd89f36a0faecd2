from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from io import BufferedReader
from pathlib import Path

from search_spaces.study import Correlation
from tests.support.processes import Process
from tests.support.synthetic_results import STUDY, make_results, report_on

ENDS = {
    ".html": b"</html>",
    ".svg": b"</svg>\n",
    ".csv": b"\n",
    ".json": b"}",
}
# The page and its index entry, three figures, four tables.
FILES = 2 + 3 + 4


def write(_report: Callable[[str], None], folder: Path, seed: int) -> None:
    rows, spectra = make_results(columns=50, rng_seed=seed)
    study = replace(STUDY, analyses=(Correlation(),))
    report_on(rows[:16], folder, spectra=spectra, study=study)


def files(folder: Path) -> list[Path]:
    return list(folder.rglob("[!.]*.*"))


def broken(folder: Path) -> list[str]:
    names = []
    for path in folder.rglob("*.*"):
        if path.suffix in ENDS and not path.read_bytes().endswith(ENDS[path.suffix]):
            names.append(path.name)
        if path.name == "trials.csv" and path.read_bytes().count(b"\n") != 17:
            names.append(path.name)
    return names


def test_concurrent_reports_write_whole_files(
    tmp_path: Path,
) -> None:
    shared, alone = tmp_path / "shared", tmp_path / "alone"
    shared.mkdir()
    processes = [Process(tmp_path, write, shared, seed) for seed in range(2)]
    with ExitStack() as reader:
        opened: dict[str, tuple[BufferedReader, bytes]] = {}
        while any(process.is_alive() for process in processes):
            assert broken(shared) == []
            for path in files(shared):
                if path.name not in opened:
                    file = reader.enter_context(path.open("rb"))
                    opened[path.name] = file, file.read()
            time.sleep(0.01)
        for name, (file, content) in opened.items():
            file.seek(0)
            assert file.read() == content, f"a program that has opened {name} keeps its old content"
        assert len(opened) == FILES
    for process in processes:
        process.end()
        assert process.errors == ""
    assert len(list(shared.rglob("*.*"))) == FILES, "no unfinished file remains"
    assert broken(shared) == []

    write(print, alone, 2)
    for path in alone.glob("*.svg"):  # change the figures, as if the other process had written last
        (shared / path.name).write_bytes(path.read_bytes())
    write(print, shared, 2)
    for path in files(alone):
        assert (shared / path.relative_to(alone)).read_bytes() == path.read_bytes(), path.name
