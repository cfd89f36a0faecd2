"""The corpora that need no file: their names, and what is settled before they are made. Imports nothing heavy."""

from __future__ import annotations

import re

from trainables.errors import UserError

PYDOCS = "pydocs"
"""Made from Python's own documentation; see `trainables.corpora.pydocs`."""
MARKOV = "markov"
"""A generated language; see `trainables.corpora.markov`. `markov-R` is the one whose log-P matrix has rank R."""
MARKOV_RANK = 100
"""Of `markov`: beyond what softmax reaches with the 24 wide embedding of scale quick, which is 26."""
LEAST_MARKOV_RANK, GREATEST_MARKOV_RANK = 5, 500
MARKOV_TYPES = 1_000
"""`<eos>` among them."""
MARKOV_TOKENS = {"train": 200_000, "valid": 20_000, "test": 20_000}
"""Each split has so many, and the rest of its last line."""

_NUMBERED = re.compile(rf"{MARKOV}-([1-9][0-9]{{0,8}})")


def is_built_in(name: str) -> bool:
    """Whether the name is of a built-in corpus, or would be with a right rank: no folder can have it."""
    return name in (PYDOCS, MARKOV) or name.startswith(f"{MARKOV}-")


def markov_rank(name: str) -> int | None:
    """The rank of the generated language of that name; None for any other corpus.

    Raises UserError for `markov-` with anything but a rank that there is.
    """
    if name == MARKOV:
        return MARKOV_RANK
    if not name.startswith(f"{MARKOV}-"):
        return None
    numbered = _NUMBERED.fullmatch(name)
    rank = int(numbered[1]) if numbered else 0
    if not LEAST_MARKOV_RANK <= rank <= GREATEST_MARKOV_RANK:
        nearest = min(max(rank, LEAST_MARKOV_RANK), GREATEST_MARKOV_RANK) if numbered else 20
        raise UserError(
            f"a generated language is {MARKOV} or {MARKOV}-R, with R the rank of its log-P matrix, a number from "
            f"{LEAST_MARKOV_RANK} to {GREATEST_MARKOV_RANK}; got {name!r}: try {MARKOV}-{nearest}"
        )
    return rank


def is_generated(name: str) -> bool:
    """Whether the name is of a generated language, of which the truth is known. Raises as `markov_rank` does."""
    return markov_rank(name) is not None


def one_name(name: str) -> str:
    """The name under which a built-in corpus is known: `markov-100` is `markov`. Raises as `markov_rank` does."""
    return MARKOV if markov_rank(name) == MARKOV_RANK else name
