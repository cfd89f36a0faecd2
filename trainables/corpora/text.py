"""Tokens of a text, and its numbered vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from trainables.errors import UserError

SPLITS = ("train", "valid", "test")

END_OF_SENTENCE = "<eos>"
UNKNOWN = "<unk>"


def tokenise(text: str) -> list[str]:
    """Return each line's words, split at white space, then `<eos>` (Merity et al. 2018).

    A blank line is `<eos>` alone; a last line without a line break counts.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    if lines and not lines.endswith("\n"):
        lines += "\n"
    return lines.replace("\n", f" {END_OF_SENTENCE} ").split()


@dataclass(frozen=True)
class Vocabulary:
    """Numbering of a corpus' types (distinct words).

    `types` has the words in the order of their ids. `ids` has every type of the text; types outside
    the vocabulary have the id of `<unk>`.
    """

    types: tuple[str, ...]
    ids: dict[str, int]


def number_types(splits: Sequence[Sequence[str]], *, limit: int | None) -> Vocabulary:
    """Number the types (distinct words) of `splits` by first appearance.

    `splits` are token lists, train first. A `limit` below the number of types keeps `limit` types:
    `<eos>`, `<unk>`, and the most frequent others in train. Ties, and types absent from train, rank
    by first appearance. Other types become `<unk>`. Ids follow the first appearance in the
    resulting text.

    Raises UserError if the limit is below 3.
    """
    appearance = dict.fromkeys(chain.from_iterable(splits))
    vocabulary: Collection[str] = appearance
    if limit is not None and limit < len(appearance):
        vocabulary = _most_frequent(appearance, splits[0], limit)
    numbering: dict[str, int] = {}
    ids = {
        token: numbering.setdefault(token if token in vocabulary else UNKNOWN, len(numbering))
        for token in appearance
    }
    return Vocabulary(types=tuple(numbering), ids=ids)


def _most_frequent(appearance: dict[str, None], train: Sequence[str], limit: int) -> set[str]:
    if limit < 3:
        raise UserError(
            f"vocabulary_limit must be at least 3, because it includes {END_OF_SENTENCE} and "
            f"{UNKNOWN}; got {limit}. Leave it out to keep all {len(appearance)} types."
        )
    counts = Counter(dict.fromkeys(appearance, 0))  # equal counts stay in order of first appearance
    counts.update(train)
    del counts[END_OF_SENTENCE], counts[UNKNOWN]
    return {END_OF_SENTENCE, UNKNOWN, *(token for token, _ in counts.most_common(limit - 2))}
