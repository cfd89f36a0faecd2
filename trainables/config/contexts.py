"""Contexts of the test text at which the top words are asked for: published ones, evenly spaced ones, a user's own.

A context is everything up to one token of the test text, and is named by that token's index, 0 for the first. Imports
neither torch nor numpy.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, PositiveInt, TypeAdapter, ValidationError

from trainables.config.frozen import Frozen
from trainables.config.measurement_names import TAG_DIGITS
from trainables.errors import UserError

PTB = Path(__file__).with_name("contexts_ptb.json")
"""The 18 of the qualitative analysis (AAAI 2021, Fig. 3 and SM Table 2): six from Yang et al. 2018, six that its
authors chose, six drawn at random."""
EVEN_CONTEXTS = 18


class Context(Frozen):
    """One context."""

    group: Annotated[str, Field(pattern=r"^[\w-]+$")]
    number: PositiveInt
    """With the group, what tells it from the others of a file."""
    last_token_index: Annotated[int, Field(ge=0)]
    next_token: str | None = None
    """What follows in the test text as it is written; None where the file does not say."""


class _ListedContext(Context):
    """A context as a file may give it."""

    group: Annotated[str, Field(pattern=r"^[\w-]+$")] = "own"
    number: PositiveInt | None = None  # type: ignore[assignment]


_CONTEXT_LIST: TypeAdapter[tuple[_ListedContext, ...]] = TypeAdapter(tuple[_ListedContext, ...])


@dataclass(frozen=True, kw_only=True)
class ContextsFile:
    """A user's own contexts, as text, so that they reach workers on other machines."""

    name: str
    text: str

    @property
    def tag(self) -> str:
        """The first 8 hexadecimal digits of the text's SHA-256: another text is another measurement."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:TAG_DIGITS]

    @property
    def measurement(self) -> str:
        """The measurement that takes the top words there."""
        return f"top_k-{self.tag}@1"

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The contexts. Raises UserError where the text is no list of them, is empty, or names two alike."""
        return parse_contexts(self.name, self.text)


def read_contexts(path: Path) -> ContextsFile:
    """The user's own file of contexts. Raises UserError where it cannot be read or is not one."""
    try:
        file = ContextsFile(name=path.name, text=path.read_bytes().decode())
    except OSError as error:
        raise UserError(
            f"--contexts takes a JSON file, and {path} cannot be read ({error.strerror}): check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"--contexts takes a JSON file in UTF-8, and {path} is not one: convert it") from error
    assert file.contexts  # parsed, so that a bad file is refused here
    return file


def parse_contexts(name: str, text: str) -> tuple[Context, ...]:
    """The contexts in a JSON list of objects with last_token_index and, if wanted, group, number and next_token.

    Those without a group belong to "own", those without a number take their place in the list. Raises UserError.
    """
    try:
        listed = _CONTEXT_LIST.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise UserError(
            "a contexts file is a JSON list of objects with last_token_index and, if wanted, group, number and "
            f"next_token; {name} is not one ({place}: {first['msg']}): mend it"
        ) from error
    if not listed:
        raise UserError(f"a contexts file names at least one context, and {name} has an empty list: add some")
    contexts = tuple(
        Context.model_validate(context.model_dump() | {"number": context.number or place})
        for place, context in enumerate(listed, start=1)
    )
    names = [(context.group, context.number) for context in contexts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(
            f"the contexts of a file differ in group or number, and {name} has {twice[0]} {twice[1]} twice: number "
            "them apart"
        )
    return contexts


@functools.cache
def published_contexts() -> tuple[Context, ...]:
    """The 18 published contexts of Penn Treebank's test text."""
    return parse_contexts(PTB.name, PTB.read_text(encoding="utf-8"))


def even_contexts(tokens: int) -> tuple[Context, ...]:
    """18 contexts that cut `tokens` test tokens evenly, the last one before the last token; fewer in a tiny text."""
    count = min(EVEN_CONTEXTS, tokens - 1)
    return tuple(
        Context(group="even", number=number, last_token_index=(tokens - 1) * number // count - 1)
        for number in range(1, count + 1)
    )


def require_in_text(file: ContextsFile, words: Sequence[str], corpus: str) -> None:
    """Raise UserError where a context is not in the test text `words`, or another word follows than the file says."""
    for context in file.contexts:
        index = context.last_token_index
        if index > len(words) - 2:
            raise UserError(
                f"a context is followed by a token, so that in the test text of {corpus} its last_token_index is at "
                f"most {len(words) - 2}; {file.name} has {index}: mend it, or choose the corpus that it was made for"
            )
        if context.next_token not in (None, words[index + 1]):
            raise UserError(
                f"{file.name} says that {context.next_token!r} follows token {index} of the test text, and in "
                f"{corpus} {words[index + 1]!r} does: mend it, or choose the corpus that it was made for"
            )
