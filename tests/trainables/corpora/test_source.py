from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.support.faulty_server import REAL_DATA, write_corpus
from trainables.corpora import PUBLISHED_CORPORA, CorpusIdentity, check, identity
from trainables.errors import UserError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "novels", train="a b\nc\n", valid="a\n", test="d a\n")
    return tmp_path


@pytest.mark.parametrize("name", PUBLISHED_CORPORA)
def test_real_files_match_pinned_identity(name: str) -> None:
    if not (REAL_DATA / name).is_dir():
        pytest.skip(f"needs the real {name}, in ../shared/data")
    assert check(name, data_dir=REAL_DATA)[0] == identity(name, data_dir=None)


def test_file_hashes_identify_a_folder(data: Path) -> None:
    texts = {"train.txt": "a b\nc\n", "valid.txt": "a\n", "test.txt": "d a\n"}
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    expected = hashlib.sha256(
        json.dumps(digests, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    assert identity("novels", data_dir=data) == CorpusIdentity(
        name="novels",
        sha256=expected,
        train_tokens=5,
        valid_tokens=2,
        test_tokens=3,
        vocabulary_size=5,
    )


def test_missing_published_file_is_fetched(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    write_corpus(data / "ptb")
    with pytest.raises(UserError, match=f"ptb/train.txt .*corpus fetch ptb --data-dir '{data}'"):
        check("ptb", data_dir=data)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, r"is missing\. Add"),
        (b"caf\xe9\n", "byte 0xe9 at offset 3"),
        (b"", "0 bytes"),
        (b"\n \n", "3 bytes"),
        ("a folder", "not a regular file"),
    ],
)
def test_unusable_split_is_named(data: Path, content: bytes | str | None, sentence: str) -> None:
    path = data / "novels" / "valid.txt"
    path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        path.mkdir()
    for read in (check, identity):
        with pytest.raises(UserError, match=rf"valid\.txt.*{sentence}"):
            read("novels", data_dir=data)
