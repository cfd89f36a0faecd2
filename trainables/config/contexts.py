"""Contexts of the test text at which the top words are asked for: published ones, evenly spaced
ones, a user's own.

A context is everything up to one token of the test text, and is named by that token's index, 0 for
the first. Imports neither torch nor numpy."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from trainables.config.frozen import Frozen
from trainables.config.measurement_names import TAG_DIGITS
from trainables.config.text_file import TextFile
from trainables.errors import UserError, first_problem

PTB = Path(__file__).with_name("contexts_ptb.json")
"""The 18 of the qualitative analysis (AAAI 2021, Fig. 3 and SM Table 2): six from Yang et al. 2018,
six that its authors chose, six drawn at random."""
EVEN_CONTEXTS = 18


class Context(Frozen):
    """One context."""

    group: Annotated[str, Field(pattern=r"^[\w-]+$")] = "own"
    number: Annotated[int, Field(ge=1, lt=10**18)] = 0
    """With the group, what tells it from the others of a file; where the file does not say, its
    place in the list."""
    last_token_index: Annotated[int, Field(ge=0)]
    next_token: str | None = None
    """What follows in the test text as it is written; None where the file does not say."""


_CONTEXT_LIST: TypeAdapter[tuple[Context, ...]] = TypeAdapter(tuple[Context, ...])


@dataclass(frozen=True, kw_only=True)
class ContextsFile(TextFile):
    """A user's own contexts."""

    @property
    def tag(self) -> str:
        """The first 8 hexadecimal digits of the file's SHA-256: another text is another
        measurement."""
        return self.sha256[:TAG_DIGITS]

    @property
    def measurement(self) -> str:
        """The measurement that takes the top words there."""
        return f"top_k-{self.tag}@1"

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The contexts: a JSON list of objects with last_token_index and, if wanted, group, number
        and next_token.

        Raises UserError where the text is no such list, is empty, or names two alike.
        """
        try:
            listed = _CONTEXT_LIST.validate_json(self.text)
        except ValidationError as error:
            raise UserError(
                "a contexts file is a JSON list of objects with last_token_index and, if wanted, "
                "group, number and "
                f"next_token; {self.name} is not one ({first_problem(error)}): fix it"
            ) from error
        if not listed:
            raise UserError(
                f"a contexts file names at least one context, and {self.name} has an empty list: "
                f"add some"
            )
        contexts = tuple(
            context if context.number else context.model_copy(update={"number": place})
            for place, context in enumerate(listed, start=1)
        )
        names = [(context.group, context.number) for context in contexts]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UserError(
                f"the contexts of a file differ in group or number, and {self.name} has "
                f"{twice[0]} {twice[1]} twice: number them apart"
            )
        return contexts


def read_contexts(path: Path) -> ContextsFile:
    """The user's own file of contexts. Raises UserError where it cannot be read or is not one."""
    file = ContextsFile.read(path, "--contexts takes a JSON file")
    assert file.contexts  # parsed, so that a bad file is refused here
    return file


@functools.cache
def published_contexts() -> tuple[Context, ...]:
    """The 18 published contexts of Penn Treebank's test text."""
    return read_contexts(PTB).contexts


def even_contexts(tokens: int) -> tuple[Context, ...]:
    """18 contexts that cut `tokens` test tokens evenly; fewer in a tiny text."""
    return tuple(
        Context(group="even", number=number, last_token_index=index)
        for number, index in enumerate(even_indices(tokens, EVEN_CONTEXTS), start=1)
    )


def even_indices(tokens: int, most: int) -> list[int]:
    """The indices that cut `tokens` tokens evenly, at most `most`; the last one is before the last
    token."""
    count = min(most, tokens - 1)
    return [(tokens - 1) * number // count - 1 for number in range(1, count + 1)]


def require_in_text(file: ContextsFile, words: Sequence[str], corpus: str) -> None:
    """Raise UserError where a context is not in the test text `words`, or another word follows than
    the file says."""
    for context in file.contexts:
        index = context.last_token_index
        if index > len(words) - 2:
            raise UserError(
                f"a context is followed by a token, so that in the test text of {corpus} its "
                f"last_token_index is at most {len(words) - 2}; {file.name} has {index}: fix it, "
                "or choose the corpus that it was made for"
            )
        if context.next_token not in (None, words[index + 1]):
            raise UserError(
                f"{file.name} says that {context.next_token!r} follows token {index} of the test "
                f"text, and in {corpus} {words[index + 1]!r} does: fix it, or choose the corpus "
                "that it was made for"
            )
