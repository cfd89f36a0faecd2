"""Identities: the published constants against the real files, folders against hand counts, and no heavy imports."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.faulty_server import REAL_DATA, REPOSITORY, write_corpus
from trainables.corpora import CorpusIdentity, identity
from trainables.corpora.corpus_identity import measured_identity
from trainables.corpora.published_corpora import PUBLISHED_CORPORA
from trainables.corpora.source import read_source

PUBLISHED = {"ptb": (929_589, 73_760, 82_430, 10_000), "wikitext-2": (2_088_628, 217_646, 245_569, 33_278)}


def sizes(of: CorpusIdentity) -> tuple[int, int, int, int]:
    return of.train_tokens, of.valid_tokens, of.test_tokens, of.vocabulary_size


@pytest.mark.parametrize("name", PUBLISHED)
def test_known_corpora_have_the_published_sizes_without_any_data(name: str, tmp_path: Path) -> None:
    assert sizes(identity(name, data_dir=tmp_path)) == PUBLISHED[name]


@pytest.mark.parametrize("name", PUBLISHED_CORPORA)
def test_the_real_files_have_the_identity_of_the_constants(name: str) -> None:
    if not (REAL_DATA / name).is_dir():
        pytest.skip(f"the real {name} is not beside this repository")
    source = read_source(name, data_dir=REAL_DATA)
    assert measured_identity(name, source) == identity(name, data_dir=None)


def test_a_folder_is_identified_by_the_hashes_of_its_files(tmp_path: Path) -> None:
    texts = {"train": "a b\nc\n", "valid": "a\n", "test": "d a\n"}
    write_corpus(tmp_path / "mine", **texts)
    digests = {f"{split}.txt": hashlib.sha256(text.encode()).hexdigest() for split, text in texts.items()}
    expected = hashlib.sha256(json.dumps(digests, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    assert identity("mine", data_dir=tmp_path) == CorpusIdentity(
        name="mine", sha256=expected, train_tokens=5, valid_tokens=2, test_tokens=3, vocabulary_size=5
    )


def test_a_change_of_one_letter_changes_the_identity(tmp_path: Path) -> None:
    write_corpus(tmp_path / "mine", train="a b\n", valid="a\n", test="a\n")
    before = identity("mine", data_dir=tmp_path)
    write_corpus(tmp_path / "mine", test="b\n")
    assert identity("mine", data_dir=tmp_path).sha256 != before.sha256


def test_identity_imports_neither_numpy_nor_torch() -> None:
    program = (
        "import sys; from trainables.corpora import identity;"
        "identity('pydocs', data_dir=None); identity('ptb', data_dir=None);"
        "print(sorted({'numpy', 'torch', 'pandas'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert run.stdout.strip() == "[]"
