"""A generated language in which every text repeats one symbol (Godey and Artzi 2026, SpamLang).

A text is one line: one of V symbols seven times, and `<eos>`. A model that has learned the language
has a loss of ln V nats per eight tokens (`spam_floor`).

A deal is all V symbols in random order, and a split consists of whole deals. So that model's mean
loss is exactly the floor. Only a model that remembers the current deal can be better, by at most
one nat per text.

Every host generates the same text, because the order comes from SHAKE-256.
"""

from __future__ import annotations

import hashlib

from trainables.config import SPAM, SPAM_REPEATS, SPAM_TEXTS
from trainables.corpora.published import CorpusIdentity
from trainables.corpora.text import SPLITS

MIN_DEALS = {"train": 2}
"""Minimum number of random orders of all symbols. With two, a model cannot just memorise one."""
KEY_BYTES = 8
SHA256 = {
    500: "3764a54880326568cb5fbea6e7b2e849e04c26dde1df14faee4cea986c04701e",
    1_000: "61fea3a579a04424023e4832f53b6b695436d0ca5f094fd0798cd2e64fd8d701",
    2_000: "3a8236402d2affe6762ddc97f48014171c17100d6e2a154333c28b51a04a11c6",
    4_000: "8701deee23b93b45de77cad8f86302fe6028bd13ec62a5e7937232abb421311a",
    32_000: "98fd71ae0c0140864d5f7ac93dab35b5bd80560fe024736acda9dfb2d3e8e857",
    128_000: "f93e11afce4aafec792675899dc0751fbb727067cb395dc3f7adc79b9bfc399e",
}
"""SHA-256 of the texts by number of symbols, so that planning the study `spam` generates no
texts."""


def spam_texts(symbols: int) -> dict[str, str]:
    """Return the three splits; each line is one text of the language."""
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
    """Return the language's SHA-256 and sizes; None if `SHA256` has no entry for `symbols`."""
    if symbols not in SHA256:
        return None
    train, valid, test = (_deals(split, symbols) * symbols * (SPAM_REPEATS + 1) for split in SPLITS)
    name = f"{SPAM}-{symbols}"
    return CorpusIdentity(name, SHA256[symbols], train, valid, test, symbols + 1)


def _deals(split: str, symbols: int) -> int:
    return max(MIN_DEALS.get(split, 1), -(-SPAM_TEXTS[split] // symbols))


def _order(split: str, symbols: int, deal: int) -> list[int]:
    stream = hashlib.shake_256(f"{SPAM} {symbols} {split} {deal}".encode()).digest(
        KEY_BYTES * symbols
    )
    keys = [stream[start : start + KEY_BYTES] for start in range(0, len(stream), KEY_BYTES)]
    return sorted(range(symbols), key=keys.__getitem__)
