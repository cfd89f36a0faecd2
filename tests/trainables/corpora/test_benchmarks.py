from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.faulty_server import WebServer, publish
from trainables.config import TextFile
from trainables.corpora import Benchmark, WordPair, ensure, parse_pairs, read_folder, read_published
from trainables.errors import UserError

TEXTS = {"EN-A.txt": "cat\tdog\t7.5\r\n", "EN-B.txt": "sun  moon 1\n"}


def test_missing_files_are_downloaded_once(
    web: WebServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=f"fetch word-similarity --data-dir {tmp_path}"):
        read_published(tmp_path)
    publish(web, monkeypatch, "word-similarity", TEXTS)
    for _ in range(2):
        ensure("word-similarity", data_dir=tmp_path)
    assert sorted(web.requests) == [f"word-similarity/t.{name}" for name in TEXTS]
    files = [benchmark.file for benchmark in read_published(tmp_path)]
    assert {file.name: file.text for file in files} == TEXTS
    (tmp_path / "word-similarity" / "EN-A.txt").write_text("cat dog 1\n")
    with pytest.raises(UserError, match=r"EN-A\.txt is not .*corpus fetch word-similarity"):
        ensure("word-similarity", data_dir=tmp_path)


def test_pairs_are_lower_cased() -> None:
    text = "Cat\tDOG\t7.5\r\n\n  sun   moon -1e0\n"
    assert parse_pairs(Benchmark(name="A", file=TextFile(name="a.txt", text=text))) == (
        WordPair(first="cat", second="dog", score=7.5),
        WordPair(first="sun", second="moon", score=-1.0),
    )


def test_folder_tag_depends_on_files(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "has no "),
        ({"EN-A.txt": "", "A.txt": ""}, "both the benchmark 'A'"),
        *(
            ({"EN-A.txt": f"cat dog 1\n{line}\n"}, rf"line 2 of EN-A\.txt is '{line}'")
            for line in ("cat dog", "cat dog 1 2", "cat dog one", "cat dog nan")
        ),
    ],
)
def test_unusable_folder_gets_one_sentence(
    tmp_path: Path, files: dict[str, str], sentence: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=sentence):
        read_folder(tmp_path)
