from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.support.faulty_server import REAL_DATA
from trainables.config import even_contexts, published_contexts, read_contexts
from trainables.corpora import test_words as words_of_test
from trainables.errors import UserError


def contexts_file(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "mine.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


@pytest.mark.skipif(not REAL_DATA.is_dir(), reason="needs the real corpora, in ../shared/data")
def test_published_contexts_precede_their_words() -> None:
    words = (REAL_DATA / "ptb" / "test.txt").read_text().replace("\n", " <eos> ").split()
    contexts = published_contexts()
    assert [words[context.last_token_index + 1] for context in contexts] == [
        context.next_token for context in contexts
    ]
    assert [(context.group, context.number) for context in contexts] == [
        (group, number) for group in ("yang", "authors", "random") for number in range(1, 7)
    ]
    assert words_of_test("ptb", data_dir=REAL_DATA) == tuple(words)


@pytest.mark.parametrize("tokens", [4, 19, 20, 2_000, 82_430])
def test_even_contexts_are_evenly_spaced(tokens: int) -> None:
    indices = [context.last_token_index for context in even_contexts(tokens)]
    assert len(indices) == min(18, tokens - 1)
    assert indices[-1] == tokens - 2, "the last token follows the last context"
    gaps = {after - before for before, after in zip([-1, *indices], indices, strict=False)}
    assert min(gaps) >= 1 and max(gaps) - min(gaps) <= 1


def test_contexts_file_may_name_only_positions(tmp_path: Path) -> None:
    positions = [
        {"last_token_index": 1},
        {"last_token_index": 0, "group": "a", "next_token": "cat"},
    ]
    path = contexts_file(tmp_path, positions)
    file = read_contexts(path)
    first, second = file.contexts
    assert (first.group, first.number, first.next_token) == ("own", 1, None)
    assert (second.group, second.number, second.next_token) == ("a", 2, "cat")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert file.measurement == f"top_k-{digest[:8]}@1"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read"),
        (b'"\xe4"', "UTF-8"),
        (b"{", "not a contexts file"),
        ({"last_token_index": 1}, "not a contexts file"),
        ([{"index": 1}], "did you mean 0.last_token_index"),
        ([{"last_token_index": -1}], "greater than or equal to 0"),
        ([{"last_token_index": 1, "group": "a b"}], "group"),
        ([], "empty list"),
        ([{"last_token_index": 1, "number": 2}, {"last_token_index": 2}], "own 2 twice"),
    ],
)
def test_empty_contexts_file_is_refused(tmp_path: Path, content: object, sentence: str) -> None:
    path = contexts_file(tmp_path, content)
    if content is None:
        path.unlink()
    with pytest.raises(UserError, match=sentence) as error:
        read_contexts(path)
    assert "mine.json" in str(error.value) and "\n" not in str(error.value)
