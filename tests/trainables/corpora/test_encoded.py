from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.faulty_server import write_corpus
from trainables.config import CorpusConfig
from trainables.corpora import identity, load
from trainables.errors import UserError


def config_of(name: str, data_dir: Path | None, limit: int | None = None) -> CorpusConfig:
    sha256 = identity(name, data_dir=data_dir).sha256
    return CorpusConfig(name=name, sha256=sha256, vocabulary_limit=limit)


def test_ids_follow_first_appearance(tmp_path: Path) -> None:
    write_corpus(tmp_path / "mine", train="b a\nb\n", valid="c b\n", test="d\n")
    corpus = load(config_of("mine", tmp_path), data_dir=tmp_path)
    assert corpus.vocabulary == ("b", "a", "<eos>", "c", "d")
    splits = (corpus.train, corpus.valid, corpus.test)
    assert [split.tolist() for split in splits] == [[0, 1, 2, 0, 2], [3, 0, 2], [4, 2]]


@pytest.mark.parametrize("limit", [None, 500, 100_000])
def test_planned_sizes_equal_loaded_sizes(limit: int | None) -> None:
    planned = identity("pydocs", data_dir=None)
    corpus = load(config_of("pydocs", None, limit), data_dir=None)
    assert len(corpus.vocabulary) == planned.limited_vocabulary_size(limit)
    sizes = (planned.train_tokens, planned.valid_tokens, planned.test_tokens)
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == sizes
    assert set(np.concatenate([corpus.train, corpus.valid, corpus.test])) == set(
        range(len(corpus.vocabulary))
    )


def test_process_encodes_corpus_once() -> None:
    config = config_of("pydocs", None, 300)
    corpus = load(config, data_dir=None)
    assert load(config, data_dir=None) is corpus
    with pytest.raises(ValueError, match="read-only"):
        corpus.train[0] = 1


def test_files_changed_since_plan_are_refused(tmp_path: Path) -> None:
    write_corpus(tmp_path / "mine", train="a b\n", valid="a\n", test="a\n")
    config = config_of("mine", tmp_path)
    write_corpus(tmp_path / "mine", train="a c\n")
    with pytest.raises(UserError, match=f"but the plan has {config.sha256}"):
        load(config, data_dir=tmp_path)
