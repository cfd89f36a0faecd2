"""The error written for the user, and helpers that shorten other errors."""

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

PROGRAM = (
    os.environ.get("SWEEP_PROGRAM")
    or f"python {'sweep.py' if Path('sweep.py').is_file() else '-m sweep'}"
)
"""Words typed before a command or study. Python code outside the checkout, such as a notebook, uses
the module."""
KEPT = "results and checkpoints are kept"
GO_ON = f"type the same command again to go on; {KEPT}."
"""Printed when a sweep stops early."""
COMMANDS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
)
"""Characters that control a terminal: control characters except tab and line feed, marks of writing
direction, surrogates."""


class UserError(Exception):
    """Bad input: one sentence with the rule, the value received and the fix. The command exits with
    2."""


def first_line(error: BaseException | str) -> str:
    """Return the first line of an error without its final dot or colon, to use inside a sentence.

    An error without a text gives its type's name; an empty string gives ""."""
    return _lines(error)[0].rstrip(".:")


def last_line(error: BaseException | str) -> str:
    """Return the last line, which names the cause in another process's error."""
    return _lines(error)[-1]


def _lines(error: BaseException | str) -> list[str]:
    return str(error).strip().splitlines() or [
        "" if isinstance(error, str) else type(error).__name__
    ]


def line_of(frames: Iterable[tuple[str, int]], names: Iterable[str] = ("",)) -> str | None:
    """Return "my_layer.py, line 3" for the first of `frames` whose file name starts with one of
    `names`."""
    for file, line in frames:
        # A frame without a file is named "<frozen importlib._bootstrap>" or similar.
        if Path(file).name.startswith(tuple(names)) and not file.startswith("<"):
            return f"{Path(file).name.partition(' ')[0]}, line {line}"
    return None


def terminal_text(text: str) -> str:
    """Return the text with terminal control characters escaped, as in "\\x1b[2J"."""
    return COMMANDS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def first_problem(error: ValidationError) -> str:
    """Return the first problem, such as "training.epochs: Input should be greater than 0".

    An unknown key goes before a missing one, which it may misspell."""
    problems = error.errors()
    first = next(
        (problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0]
    )
    place, rule = _place(first), first["msg"].removeprefix("Value error, ")
    missing = [_place(problem) for problem in problems if problem["type"] == "missing"]
    meant = did_you_mean(place, missing).strip() if first["type"] == "extra_forbidden" else ""
    return f"{place or 'content'}: {rule}" + (f"; {meant}" if meant else "")


def _place(problem: ErrorDetails) -> str:
    return ".".join(map(str, problem["loc"]))


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return "did you mean grid? ", to precede a list of choices; "" if none is similar."""
    near = nearest(word, choices, most=2, cutoff=0.5)
    return f"did you mean {' or '.join(near)}? " if near else ""


def nearest(word: str, choices: Iterable[str], *, most: int = 1, cutoff: float) -> list[str]:
    """Return the choice equal to `word`, else those it abbreviates, else up to `most` similar ones
    by difflib's ratio. Case is ignored."""
    by_look = {choice.casefold(): choice for choice in sorted(choices)}
    look = word.casefold()
    if look in by_look:
        return [by_look[look]]
    return [choice for known, choice in by_look.items() if _is_abbreviation(look, known)] or [
        by_look[known] for known in difflib.get_close_matches(look, by_look, n=most, cutoff=cutoff)
    ]


def _is_abbreviation(word: str, name: str) -> bool:
    """ "training.lr" abbreviates "training.learning_rate"."""
    (before, _, last), (place, _, full) = word.rpartition("."), name.rpartition(".")
    return before == place and "_" in full and last == "".join(part[:1] for part in full.split("_"))
