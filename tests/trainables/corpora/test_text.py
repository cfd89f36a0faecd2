"""Expected values come from brute-force versions of the protocol."""

from __future__ import annotations

import io
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.corpora.text import number_types, tokenise
from trainables.errors import UserError

WORDS = st.sampled_from(["a", "b", "c", "d", "e", "f", "<unk>", "<eos>"])
SPLIT = st.lists(WORDS, max_size=30).map(lambda words: [*words, "<eos>"])
TEXT = st.text(alphabet=st.sampled_from("ab \t\n\r\x0b\u00a0\u00e9"), max_size=40)


def protocol_tokens(text: str) -> list[str]:
    lines = io.StringIO(text, newline=None)
    return [token for line in lines for token in [*line.split(), "<eos>"]]


def brute_force(splits: list[list[str]], limit: int | None) -> tuple[list[str], list[list[int]]]:
    order: list[str] = []
    for token in chain.from_iterable(splits):
        if token not in order:
            order.append(token)
    words = order
    if limit is not None and limit < len(order):
        plain_words = [token for token in order if token not in ("<eos>", "<unk>")]
        ranked = sorted(
            plain_words, key=lambda token: (-splits[0].count(token), order.index(token))
        )
        words = ["<eos>", "<unk>", *ranked[: limit - 2]]
    rewritten = [[token if token in words else "<unk>" for token in split] for split in splits]
    vocabulary: list[str] = []
    for token in chain.from_iterable(rewritten):
        if token not in vocabulary:
            vocabulary.append(token)
    return vocabulary, [[vocabulary.index(token) for token in split] for split in rewritten]


@given(TEXT)
def test_tokens_are_words_and_ends(text: str) -> None:
    assert tokenise(text) == protocol_tokens(text)


@given(st.lists(SPLIT, min_size=3, max_size=3), st.none() | st.integers(3, 12))
def test_numbering_agrees_with_brute_force(splits: list[list[str]], limit: int | None) -> None:
    vocabulary, ids = brute_force(splits, limit)
    numbered = number_types(splits, limit=limit)
    assert list(numbered.types) == vocabulary
    assert [[numbered.ids[token] for token in split] for split in splits] == ids


def test_too_small_limit_is_refused() -> None:
    with pytest.raises(UserError, match=r"at least 3.*got 2.*all 4 types"):
        number_types([["a", "b", "c", "<eos>"], [], []], limit=2)
