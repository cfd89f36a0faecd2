from __future__ import annotations

import math
from collections import Counter, defaultdict

import pytest

from tests.support.other_process import sha256_elsewhere
from trainables.config import spam_floor
from trainables.corpora import SPLITS, identity, tokenise
from trainables.corpora.source import compute_identity, read_texts
from trainables.corpora.spam import SHA256, spam_identity, spam_texts

HUNDRED_SHA256 = "18fbff99cbaa559c7ef876f2756f43779a685054a19fe04a83a48c034be0707c"


@pytest.mark.parametrize("symbols", [100, 1000])
@pytest.mark.parametrize("split", SPLITS)
def test_floor_is_text_entropy(symbols: int, split: str) -> None:
    """The expected entropy comes from counts of the tokens after each prefix in the text."""
    following: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    tokens = tokenise(spam_texts(symbols)[split])
    beginning: tuple[str, ...] = ()
    for token in tokens:
        following[beginning][token] += 1
        beginning = () if token == "<eos>" else (*beginning, token)
    nats = -sum(
        count * math.log(count / sum(counts.values()))
        for counts in following.values()
        for count in counts.values()
    )
    assert spam_floor(symbols) == pytest.approx(nats / len(tokens), rel=1e-12)


@pytest.mark.parametrize("symbols", [100, 2500, 32_000])
def test_splits_have_equal_symbol_counts(symbols: int) -> None:
    for split, text in spam_texts(symbols).items():
        lines = [line.split(" ") for line in text.splitlines()]
        assert {len(line) for line in lines} == {7} and all(len(set(line)) == 1 for line in lines)
        counts = Counter(line[0] for line in lines)
        assert len(counts) == symbols and len(set(counts.values())) == 1
        assert len(lines) >= (50_000 if split == "train" else 5_000)
        assert counts["s0"] >= (2 if split == "train" else 1)


@pytest.mark.parametrize("symbols", [*SHA256, 100])
def test_recorded_identity_matches_texts(symbols: int) -> None:
    name = f"spam-{symbols}"
    measured = compute_identity(name, read_texts(name, data_dir=None))
    assert spam_identity(symbols) in (measured, None)
    assert identity(name, data_dir=None) == measured
    assert measured.vocabulary_size == symbols + 1
    if symbols == 100:
        assert measured.sha256 == HUNDRED_SHA256


def test_text_needs_no_numpy() -> None:
    check = "import sys; assert not {'numpy', 'torch'} & set(sys.modules)"
    assert sha256_elsewhere("spam-100", and_then=check) == HUNDRED_SHA256
