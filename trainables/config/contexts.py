"""Contexts at which `top_k` lists likely next words: published, evenly spaced, or custom.

A context is the test text up to and including one token, whose index counts from 0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, NonNegativeInt, TypeAdapter, ValidationError

from trainables.config.frozen import Frozen
from trainables.config.measurement_names import TAG_DIGITS
from trainables.config.text_file import TextFile
from trainables.errors import UserError, first_problem

PTB = Path(__file__).with_name("contexts_ptb.json")
"""The contexts of AAAI 2021 (Fig. 3, SM Table 2) in Penn Treebank."""
EVEN_CONTEXTS = 18


class Context(Frozen):
    """A context in a contexts file, identified by group and number."""

    group: Annotated[str, Field(pattern=r"^[\w-]+$")] = "own"
    number: Annotated[int, Field(ge=1, lt=10**18)] = 0
    """The default, 0, means the context's position in the file, counted from 1."""
    last_token_index: NonNegativeInt
    next_token: str | None = None
    """Token that must follow in the test text."""


_CONTEXT_LIST: TypeAdapter[tuple[Context, ...]] = TypeAdapter(tuple[Context, ...])


@dataclass(frozen=True, kw_only=True)
class ContextsFile(TextFile):
    """A file of the user's own contexts."""

    @property
    def tag(self) -> str:
        """First eight hexadecimal digits of the file's SHA-256."""
        return self.sha256[:TAG_DIGITS]

    @property
    def measurement(self) -> str:
        """Return the name of the measurement that uses this file, such as "top_k-1a2b3c4d@1"."""
        return f"top_k-{self.tag}@1"

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Return the contexts.

        Raises UserError unless the file is a JSON list of at least one context, all distinct.
        """
        try:
            entries = _CONTEXT_LIST.validate_json(self.text)
        except ValidationError as error:
            raise UserError(
                f"{self.name} is not a contexts file ({first_problem(error)}): write a JSON list "
                "of objects with last_token_index and optional group, number and next_token"
            ) from error
        if not entries:
            raise UserError(f"{self.name} has an empty list: add a context")
        contexts = tuple(
            context if context.number else context.model_copy(update={"number": number})
            for number, context in enumerate(entries, start=1)
        )
        names = [(context.group, context.number) for context in contexts]
        if duplicate := next((name for name in names if names.count(name) > 1), None):
            raise UserError(
                f"{self.name} lists context {duplicate[0]} {duplicate[1]} twice: change a group or "
                "number"
            )
        return contexts


def read_contexts(path: Path) -> ContextsFile:
    """Read a contexts file. Raises UserError if the file is unreadable or invalid."""
    file = ContextsFile.read(path, "--contexts")
    assert file.contexts  # parse, so that a bad file is refused here
    return file


@functools.cache
def published_contexts() -> tuple[Context, ...]:
    """Return the Penn Treebank contexts of SM Table 2."""
    return read_contexts(PTB).contexts


def even_contexts(tokens: int) -> tuple[Context, ...]:
    """Return 18 contexts evenly spaced in a text of `tokens` tokens, or fewer for a tiny text."""
    return tuple(
        Context(group="even", number=number, last_token_index=index)
        for number, index in enumerate(even_indices(tokens, EVEN_CONTEXTS), start=1)
    )


def even_indices(tokens: int, limit: int) -> list[int]:
    """Return up to `limit` evenly spaced indices in a text of `tokens` tokens.

    The last token is excluded, because it has no next token.
    """
    count = min(limit, tokens - 1)
    return [(tokens - 1) * number // count - 1 for number in range(1, count + 1)]


def require_in_text(file: ContextsFile, words: Sequence[str], corpus: str) -> None:
    """Raise UserError if a context is outside the test text, or its next token is wrong."""
    for context in file.contexts:
        index = context.last_token_index
        if index > len(words) - 2:
            raise UserError(
                f"{file.name} has last_token_index {index}, but the test text of {corpus} allows "
                f"at most {len(words) - 2}: fix the file, or choose another corpus"
            )
        if context.next_token not in (None, words[index + 1]):
            raise UserError(
                f"{file.name} has next_token {context.next_token!r} after token {index}, but "
                f"the test text of {corpus} has {words[index + 1]!r}: fix it, or use another corpus"
            )
