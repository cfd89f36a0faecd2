"""A generated language that is trivial to describe: every text repeats one symbol (Godey and Artzi
2026, SpamLang).

A text is one of V symbols seven times and `<eos>`, a line of its own. Whoever has read the first
symbol knows the rest, and the first symbol may be any: a model that has learned the language loses
ln V in every eight tokens and nothing else (`spam_floor`). In arXiv 2603.10145 it is the trivial
pattern that models stop learning as V grows.

Symbols are dealt like cards: a deal is all V of them in random order, and a split is as many deals
as it needs. So every symbol is in every split, equally often, and the mean loss of a model that has
learned the language is the floor exactly over whole deals, whatever the draw. Only a reader who
remembered which cards of a deal are gone could go below it, by at most one nat a text.

The same text on every machine: the order is that of bytes of SHAKE-256. Imports neither torch nor
numpy."""

from __future__ import annotations

import hashlib

from trainables.config import SPAM, SPAM_REPEATS, SPAM_TEXTS
from trainables.corpora.published import CorpusIdentity
from trainables.corpora.text import SPLITS

LEAST_DEALS = {"train": 2}
"""So that the order of one deal is not all that there is to learn from."""
KEY_BYTES = 8
SHA256 = {
    500: "3764a54880326568cb5fbea6e7b2e849e04c26dde1df14faee4cea986c04701e",
    1_000: "61fea3a579a04424023e4832f53b6b695436d0ca5f094fd0798cd2e64fd8d701",
    2_000: "3a8236402d2affe6762ddc97f48014171c17100d6e2a154333c28b51a04a11c6",
    4_000: "8701deee23b93b45de77cad8f86302fe6028bd13ec62a5e7937232abb421311a",
    32_000: "98fd71ae0c0140864d5f7ac93dab35b5bd80560fe024736acda9dfb2d3e8e857",
    128_000: "f93e11afce4aafec792675899dc0751fbb727067cb395dc3f7adc79b9bfc399e",
}
"""Of the languages that the study `spam` reads, by V: what `texts_sha256` gives, so that a plan
need not make them."""


def spam_texts(symbols: int) -> dict[str, str]:
    """The texts of the splits of the language with so many symbols, a text a line."""
    lines = [" ".join([f"s{number}"] * SPAM_REPEATS) + "\n" for number in range(symbols)]
    return {
        split: "".join(
            lines[number]
            for deal in range(_deals(split, symbols))
            for number in _order(split, symbols, deal)
        )
        for split in SPLITS
    }


def spam_identity(symbols: int) -> CorpusIdentity | None:
    """The identity of the language with so many symbols, of those whose hash is recorded; the sizes
    by arithmetic."""
    if symbols not in SHA256:
        return None
    tokens = {split: _deals(split, symbols) * symbols * (SPAM_REPEATS + 1) for split in SPLITS}
    return CorpusIdentity(
        name=f"{SPAM}-{symbols}",
        sha256=SHA256[symbols],
        train_tokens=tokens["train"],
        valid_tokens=tokens["valid"],
        test_tokens=tokens["test"],
        vocabulary_size=symbols + 1,
    )


def _deals(split: str, symbols: int) -> int:
    return max(LEAST_DEALS.get(split, 1), -(-SPAM_TEXTS[split] // symbols))


def _order(split: str, symbols: int, deal: int) -> list[int]:
    """The symbols in the order of random keys; equal keys, of which there are none in practice, by
    number."""
    stream = hashlib.shake_256(f"{SPAM} {symbols} {split} {deal}".encode()).digest(
        KEY_BYTES * symbols
    )
    keys = [stream[start : start + KEY_BYTES] for start in range(0, len(stream), KEY_BYTES)]
    return sorted(range(symbols), key=keys.__getitem__)
