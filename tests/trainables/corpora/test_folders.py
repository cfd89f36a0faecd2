"""What may stand after --corpus, and the sentences that answer a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.faulty_server import write_corpus
from trainables.corpora import check, identity, locate, resolve_argument
from trainables.errors import UserError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "data" / "novels", train="a b\n", valid="a\n", test="b\n")
    return tmp_path / "data"


def test_pydocs_has_no_data_folder(data: Path) -> None:
    assert resolve_argument("pydocs", data) == ("pydocs", None)
    with pytest.raises(UserError, match="built in"):
        locate("pydocs", data)


def test_a_name_is_looked_up_in_the_data_folder(data: Path) -> None:
    assert resolve_argument("novels", data) == ("novels", data)
    assert resolve_argument("ptb", data / "absent") == ("ptb", data / "absent")
    assert locate("novels", data) == data / "novels"


def test_the_default_data_folder_is_data_here(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data.parent)
    assert resolve_argument("novels", None) == ("novels", data)
    assert locate("ptb", None) == data / "ptb"


def test_a_path_names_the_folder_and_its_data_folder(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_argument(f"{data}/novels/", None) == ("novels", data)
    monkeypatch.chdir(data)
    assert resolve_argument("./novels", Path("elsewhere")) == ("novels", data)
    name, data_dir = resolve_argument("../data/novels", None)
    assert identity(name, data_dir=data_dir).train_tokens == 3


def test_a_path_to_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train\.txt, valid\.txt, test\.txt; there is no folder"):
        resolve_argument(f"{tmp_path}/nothing", None)


def test_a_folder_cannot_take_the_name_of_the_built_in_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path / "pydocs", train="a\n", valid="a\n", test="a\n")
    with pytest.raises(UserError, match="rename the folder"):
        resolve_argument(str(tmp_path / "pydocs"), None)


@pytest.mark.parametrize(
    ("typed", "meant"), [("wikitext2", "wikitext-2"), ("pydoc", "pydocs"), ("novel", "novels"), ("pbt", "ptb")]
)
def test_an_unknown_corpus_is_answered_with_the_nearest_names(data: Path, typed: str, meant: str) -> None:
    with pytest.raises(
        UserError, match=rf"unknown corpus '{typed}': did you mean {meant}.*pydocs, markov, ptb, wikitext-2"
    ):
        resolve_argument(typed, data)


@pytest.mark.parametrize("name", ["", ".", "..", "../data/novels", "n" * 300])
def test_a_config_cannot_name_a_path(data: Path, name: str) -> None:
    with pytest.raises(UserError, match="unknown corpus"):
        locate(name, data)


def test_a_published_corpus_that_lacks_a_file_says_how_to_fetch_it(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    write_corpus(data / "ptb", train="a\n", valid="a\n")
    with pytest.raises(UserError, match=f"{data}/ptb/test.txt is missing.*corpus fetch ptb --data-dir '{data}'"):
        check("ptb", data_dir=data)


def test_a_published_corpus_with_other_content_shows_both_hashes(tmp_path: Path) -> None:
    write_corpus(tmp_path / "ptb", train="a\n", valid="a\n", test="a\n")
    with pytest.raises(UserError, match=r"ptb/train\.txt.*expected SHA-256 fcea919f.*got 87428fc5.*corpus fetch ptb"):
        check("ptb", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, r"novels/valid\.txt is missing: add it"),
        (b"caf\xe9\n", r"valid\.txt of 'novels' has the byte 0xe9 at offset 3"),
        (b"", r"valid\.txt of 'novels' has none \(0 bytes\)"),
        (b"\n \n", r"valid\.txt of 'novels' has none \(3 bytes\)"),
    ],
)
def test_a_split_that_cannot_be_used_is_named(data: Path, content: bytes | None, sentence: str) -> None:
    (data / "novels" / "valid.txt").unlink()
    if content is not None:
        (data / "novels" / "valid.txt").write_bytes(content)
    for read in (check, identity):
        with pytest.raises(UserError, match=sentence):
            read("novels", data_dir=data)


def test_a_file_that_cannot_be_read_is_named(data: Path) -> None:
    (data / "novels" / "train.txt").unlink()
    (data / "novels" / "train.txt").mkdir()
    with pytest.raises(UserError, match=r"novels/train\.txt could not be read \(Is a directory\)"):
        check("novels", data_dir=data)
