"""The word-similarity benchmarks as files: parsed, verified, downloaded."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.support.faulty_server import REAL_DATA, WebServer
from trainables.corpora import benchmarks
from trainables.corpora.benchmarks import (
    Benchmark,
    WordPair,
    check_benchmarks,
    ensure_benchmarks,
    fetch_benchmarks,
    parse_pairs,
    read_folder,
)
from trainables.errors import UserError

TEXTS = {"EN-A.txt": "cat\tdog\t7.5\r\n", "EN-B.txt": "sun  moon 1\n"}


@pytest.fixture
def served(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> WebServer:
    """A server that publishes two small benchmarks in place of the thirteen."""
    web.files = {f"sim/{file}": text.encode() for file, text in TEXTS.items()}
    hashes = {file[3:-4]: (file, hashlib.sha256(text.encode()).hexdigest()) for file, text in TEXTS.items()}
    monkeypatch.setattr(benchmarks, "PUBLISHED", hashes)
    monkeypatch.setattr(benchmarks, "BASE_URL", web.url + "sim/")
    return web


def test_what_is_missing_is_downloaded_once_and_verified(served: WebServer, tmp_path: Path) -> None:
    files = ensure_benchmarks(tmp_path)
    assert [(file.name, file.size_bytes) for file in files] == [(name, len(text)) for name, text in TEXTS.items()]
    assert sorted(served.requests) == [f"sim/{name}" for name in TEXTS]
    assert {name: (tmp_path / "word-similarity" / name).read_bytes().decode() for name in TEXTS} == TEXTS
    served.requests.clear()
    assert ensure_benchmarks(tmp_path) == files
    assert served.requests == []


def test_a_wrong_file_is_named_and_replaced_only_when_asked_for(served: WebServer, tmp_path: Path) -> None:
    fetch_benchmarks(tmp_path)
    (tmp_path / "word-similarity" / "EN-A.txt").write_text("cat dog 1\n")
    served.requests.clear()
    with pytest.raises(UserError, match=r"EN-A\.txt is not the published file of A.*corpus fetch word-similarity"):
        ensure_benchmarks(tmp_path)
    assert served.requests == []
    fetch_benchmarks(tmp_path)
    assert served.requests == ["sim/EN-A.txt"]


def test_without_the_files_the_command_that_gets_them_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"is missing: get it with: .*fetch word-similarity --data-dir {tmp_path}"):
        check_benchmarks(tmp_path)


@pytest.mark.skipif(not REAL_DATA.is_dir(), reason="the real benchmarks are not beside this repository")
def test_the_published_files_are_those_of_the_published_work() -> None:
    files = check_benchmarks(REAL_DATA)
    assert {file.name for file in files} == {path.name for path in (REAL_DATA / "word-similarity").glob("EN-*.txt")}


def test_pairs_are_lower_cased_and_blank_lines_left_out() -> None:
    text = "Cat\tDOG\t7.5\r\n\n  sun   moon -1e0\n"
    assert parse_pairs(Benchmark(name="A", file="a.txt", text=text)) == (
        WordPair(first="cat", second="dog", score=7.5),
        WordPair(first="sun", second="moon", score=-1.0),
    )


@pytest.mark.parametrize("line", ["cat dog", "cat dog 1 2", "cat dog one", "cat dog nan"])
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "EN-A.txt").write_text(f"cat dog 1\n{line}\n")
    with pytest.raises(UserError, match=rf"line 2 of EN-A\.txt is '{line}'"):
        read_folder(tmp_path)


def test_the_tag_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
        for name in reversed(TEXTS):
            (folder / name).write_bytes(TEXTS[name].encode())
    (folders[0] / "LICENSE").write_text("Do what you like.")
    first, second = map(read_folder, folders)
    assert (first.name, [benchmark.name for benchmark in first.benchmarks]) == ("first", ["A", "B"])
    assert first.tag == second.tag and len(first.tag) == 8
    (folders[1] / "EN-B.txt").write_text("sun moon 2\n")
    assert first.tag != read_folder(folders[1]).tag


@pytest.mark.parametrize(("files", "sentence"), [((), "has none"), (("EN-A.txt", "A.txt"), "both the benchmark 'A'")])
def test_a_folder_that_cannot_be_used_gets_one_sentence(tmp_path: Path, files: tuple[str, ...], sentence: str) -> None:
    for name in files:
        (tmp_path / name).write_text("cat dog 1\n")
    with pytest.raises(UserError, match=sentence):
        read_folder(tmp_path)
