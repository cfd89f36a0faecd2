"""Names and constants of the corpora that need no file."""

from __future__ import annotations

import math
import re

from trainables.errors import UserError

PYDOCS = "pydocs"
MARKOV = "markov"
MARKOV_RANK = 100
"""Rank of the log-P matrix of `markov`. A softmax with embedding width 24 cannot reach it."""
MIN_MARKOV_RANK, MAX_MARKOV_RANK = 5, 500
MARKOV_TYPES = 1_000
"""Vocabulary size of `markov-R`, including `<eos>`."""
MARKOV_TOKENS = {"train": 200_000, "valid": 20_000, "test": 20_000}
"""Minimum tokens per split, which ends with a complete line."""

SPAM = "spam"
MIN_SPAM_SYMBOLS, MAX_SPAM_SYMBOLS = 100, 200_000
SPAM_REPEATS = 7
SPAM_TEXTS = {"train": 50_000, "valid": 5_000, "test": 5_000}
"""Minimum texts per split of `spam-V`. All V symbols have equally many, in train at least two."""

_SPAM = re.compile(rf"{SPAM}-[0-9]{{1,9}}")


def is_built_in(name: str) -> bool:
    """Return whether a corpus is built in, even if the number in its name is out of range."""
    return (
        name in (PYDOCS, MARKOV)
        or name.startswith(f"{MARKOV}-")
        or _SPAM.fullmatch(name) is not None
    )


def markov_rank(name: str) -> int | None:
    """Return R of the corpus `markov-R`, or None for another corpus.

    Raises UserError for an invalid R.
    """
    if name == MARKOV:
        return MARKOV_RANK
    if not name.startswith(f"{MARKOV}-"):
        return None
    rule = f"{MARKOV}-R: R is the rank of the language's log-P matrix"
    return _number(name, rule, MIN_MARKOV_RANK, MAX_MARKOV_RANK)


def spam_symbols(name: str) -> int | None:
    """Return V of the corpus `spam-V`, or None for another corpus.

    Raises UserError for an invalid V.
    """
    if not _SPAM.fullmatch(name):
        return None
    rule = f"{SPAM}-V: V is the number of symbols"
    return _number(name, rule, MIN_SPAM_SYMBOLS, MAX_SPAM_SYMBOLS)


def _number(name: str, rule: str, minimum: int, maximum: int) -> int:
    kind, _, digits = name.partition("-")
    number = int(digits) if re.fullmatch("[0-9]{1,9}", digits) else 20
    nearest = min(max(number, minimum), maximum)
    if digits != str(nearest):
        raise UserError(
            f"{rule}, from {minimum} to {maximum:,}; got {name!r}: try {kind}-{nearest}"
        )
    return nearest


def spam_floor(symbols: int) -> float:
    """Return the entropy of the corpus `spam-V` in nats per token.

    A text repeats one symbol, so its entropy is ln V for a model without memory of earlier texts.
    """
    return math.log(symbols) / (SPAM_REPEATS + 1)


def is_generated(name: str) -> bool:
    """Return whether the corpus is `markov-R` or `spam-V`, whose true distributions are known.

    Raises UserError for an invalid number in the name.
    """
    return markov_rank(name) is not None or spam_symbols(name) is not None


def canonical_name(name: str) -> str:
    """Return the canonical name of a corpus, such as `markov` for `markov-100`.

    Raises UserError for an invalid number in the name.
    """
    spam_symbols(name)  # raises for an invalid number
    return MARKOV if markov_rank(name) == MARKOV_RANK else name
