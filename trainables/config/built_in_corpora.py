"""The corpora that need no file: their names, and what is settled before they are made. Imports
nothing heavy."""

from __future__ import annotations

import math
import re

from trainables.errors import UserError

PYDOCS = "pydocs"
"""Made from Python's own documentation; see `trainables.corpora.pydocs`."""
MARKOV = "markov"
"""A generated language; see `trainables.corpora.markov`. `markov-R` is the one whose log-P matrix
has rank R."""
MARKOV_RANK = 100
"""Of `markov`: beyond what softmax reaches with the 24 wide embedding of scale quick, which is
26."""
LEAST_MARKOV_RANK, GREATEST_MARKOV_RANK = 5, 500
MARKOV_TYPES = 1_000
"""`<eos>` among them."""
MARKOV_TOKENS = {"train": 200_000, "valid": 20_000, "test": 20_000}
"""Each split has so many, and the rest of its last line."""

SPAM = "spam"
"""`spam-V` is a generated language whose texts repeat one of V symbols; see
`trainables.corpora.spam`."""
LEAST_SPAM_SYMBOLS, GREATEST_SPAM_SYMBOLS = 100, 200_000
SPAM_REPEATS = 7
"""Of the symbol in every text, before its `<eos>`."""
SPAM_TEXTS = {"train": 50_000, "valid": 5_000, "test": 5_000}
"""Each split has at least so many, and every symbol equally often; train has every symbol at least
twice."""

_SPAM = re.compile(rf"{SPAM}-[0-9]{{1,9}}")


def is_built_in(name: str) -> bool:
    """Whether the name is of a built-in corpus, or would be with a right number: no folder can have
    it."""
    return (
        name in (PYDOCS, MARKOV)
        or name.startswith(f"{MARKOV}-")
        or _SPAM.fullmatch(name) is not None
    )


def markov_rank(name: str) -> int | None:
    """The rank of the generated language of that name; None for any other corpus.

    Raises UserError for `markov-` with anything but a rank that there is.
    """
    if name == MARKOV:
        return MARKOV_RANK
    if not name.startswith(f"{MARKOV}-"):
        return None
    rule = f"a generated language is {MARKOV} or {MARKOV}-R, with R the rank of its log-P matrix"
    return _number(name, rule, LEAST_MARKOV_RANK, GREATEST_MARKOV_RANK)


def spam_symbols(name: str) -> int | None:
    """V of the generated language `spam-V`; None for any other corpus.

    Raises UserError for a number of symbols that there is not.
    """
    if not _SPAM.fullmatch(name):
        return None
    rule = f"a language of repeated symbols is {SPAM}-V, with V their number"
    return _number(name, rule, LEAST_SPAM_SYMBOLS, GREATEST_SPAM_SYMBOLS)


def _number(name: str, rule: str, least: int, greatest: int) -> int:
    """The number after the hyphen. Raises UserError unless it is spelt plainly and in the range."""
    kind, _, digits = name.partition("-")
    number = int(digits) if re.fullmatch("[0-9]{1,9}", digits) else 20
    nearest = min(max(number, least), greatest)
    if digits != str(nearest):
        raise UserError(f"{rule}, from {least} to {greatest:,}; got {name!r}: try {kind}-{nearest}")
    return nearest


def spam_floor(symbols: int) -> float:
    """Entropy of `spam-V` in nats a token, for a reader that does not remember earlier texts: ln V
    for the first symbol of a text, and nothing for the rest of it, `<eos>` included, which is
    certain."""
    return math.log(symbols) / (SPAM_REPEATS + 1)


def is_generated(name: str) -> bool:
    """Whether the name is of a generated language, of which the truth is known. Raises as
    `markov_rank` and `spam_symbols` do."""
    return markov_rank(name) is not None or spam_symbols(name) is not None


def one_name(name: str) -> str:
    """The name under which a built-in corpus is known: `markov-100` is `markov`. Raises as
    `is_generated` does."""
    spam_symbols(name)  # a number that there is not has no name either
    return MARKOV if markov_rank(name) == MARKOV_RANK else name
