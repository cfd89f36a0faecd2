"""From text to token ids: tokenising, choosing the vocabulary, numbering it. Pure functions on
strings and lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from trainables.errors import UserError

SPLITS = ("train", "valid", "test")
"""The splits of every corpus, in the order in which their tokens are numbered."""

END_OF_SENTENCE = "<eos>"
UNKNOWN = "<unk>"


def tokenise(text: str) -> list[str]:
    """Return the tokens of `text`: of every line its words, split at white space, then `<eos>`
    (Merity et al. 2018).

    A blank line is `<eos>` alone; a last line without a line break counts as a line.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    if lines and not lines.endswith("\n"):
        lines += "\n"
    return lines.replace("\n", f" {END_OF_SENTENCE} ").split()


@dataclass(frozen=True)
class Vocabulary:
    """The numbering of a text's types."""

    types: tuple[str, ...]
    """The vocabulary; the index is the id."""
    ids: dict[str, int]
    """The id of every type of the text; types outside the vocabulary have the id of `<unk>`."""


def number(splits: Sequence[Sequence[str]], *, limit: int | None) -> Vocabulary:
    """Number the types of `splits` (lists of tokens; the first one is the train split) by order of
    first appearance.

    With a `limit` below the number of types, exactly `limit` types are kept: `<eos>`, `<unk>`, and
    the most frequent others of the first split, ties and types absent from it by order of first
    appearance. Every other type becomes `<unk>`, and the ids follow the order of first appearance
    in the text so rewritten.

    Raises UserError where the limit leaves no room beside `<eos>` and `<unk>`.
    """
    appearance = dict.fromkeys(chain.from_iterable(splits))
    kept: Collection[str] = appearance
    if limit is not None and limit < len(appearance):
        kept = _most_frequent(appearance, splits[0], limit)
    numbered: dict[str, int] = {}
    ids = {
        token: numbered.setdefault(token if token in kept else UNKNOWN, len(numbered))
        for token in appearance
    }
    return Vocabulary(types=tuple(numbered), ids=ids)


def _most_frequent(appearance: dict[str, None], train: Sequence[str], limit: int) -> set[str]:
    if limit < 3:
        raise UserError(
            f"a vocabulary limit is at least 3, because {END_OF_SENTENCE} and {UNKNOWN} always "
            f"belong to it; got "
            f"{limit}: give a larger one, or none to keep all {len(appearance)} types"
        )
    counts = Counter(dict.fromkeys(appearance, 0))  # equal counts stay in order of first appearance
    counts.update(train)
    del counts[END_OF_SENTENCE], counts[UNKNOWN]
    return {END_OF_SENTENCE, UNKNOWN, *(token for token, _ in counts.most_common(limit - 2))}
