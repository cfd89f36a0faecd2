"""Names and constants of the corpora that need no file."""

from __future__ import annotations

import math
import re

from trainables.errors import UserError

PYDOCS = "pydocs"
MARKOV = "markov"
MARKOV_RANK = 100
"""Rank of `markov`: above 26, the rank of softmax at embedding width 24 (scale quick)."""
MIN_MARKOV_RANK, MAX_MARKOV_RANK = 5, 500
MARKOV_TYPES = 1_000
"""Vocabulary size, including `<eos>`."""
MARKOV_TOKENS = {"train": 200_000, "valid": 20_000, "test": 20_000}
"""Minimum tokens per split; the last line is never cut."""

SPAM = "spam"
"""Each text of `spam-V` repeats one of V symbols."""
MIN_SPAM_SYMBOLS, MAX_SPAM_SYMBOLS = 100, 200_000
SPAM_REPEATS = 7
"""Copies of the symbol in each text, before `<eos>`."""
SPAM_TEXTS = {"train": 50_000, "valid": 5_000, "test": 5_000}
"""Minimum texts per split. Symbols are equally frequent, and occur at least twice in train."""

_SPAM = re.compile(rf"{SPAM}-[0-9]{{1,9}}")


def is_built_in(name: str) -> bool:
    """Return whether `name` names a built-in corpus, even if its number is invalid."""
    return (
        name in (PYDOCS, MARKOV)
        or name.startswith(f"{MARKOV}-")
        or _SPAM.fullmatch(name) is not None
    )


def markov_rank(name: str) -> int | None:
    """Return the rank of a `markov` language, or None. Raises UserError for an invalid rank."""
    if name == MARKOV:
        return MARKOV_RANK
    if not name.startswith(f"{MARKOV}-"):
        return None
    rule = f"{MARKOV}-R: R is the rank of the language's log-P matrix"
    return _number(name, rule, MIN_MARKOV_RANK, MAX_MARKOV_RANK)


def spam_symbols(name: str) -> int | None:
    """Return V of `spam-V`, or None. Raises UserError for an invalid V."""
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
    """Return the entropy of `spam-V` in nats per token.

    A whole text has entropy ln V, for a model without memory of earlier texts.
    """
    return math.log(symbols) / (SPAM_REPEATS + 1)


def is_generated(name: str) -> bool:
    """Return whether the corpus's true distribution is known.

    Raises UserError for an invalid number.
    """
    return markov_rank(name) is not None or spam_symbols(name) is not None


def canonical_name(name: str) -> str:
    """Return the canonical name, such as `markov` for `markov-100`.

    Raises UserError for an invalid number.
    """
    spam_symbols(name)  # raises for an invalid number
    return MARKOV if markov_rank(name) == MARKOV_RANK else name
