"""The error whose text is written for the person at the keyboard, and how the texts of others are
cut for one."""

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
"""What is typed before the name of a command or a study: the installed script, the module, or the
checkout's file. Python code outside the checkout, such as a notebook, has the module."""
KEPT = "results and checkpoints are kept"
GO_ON = f"type the same command again to go on; {KEPT}."
"""What may be said wherever a sweep stops before its end."""
COMMANDS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
)
"""To a terminal: control characters but tab and line feed, marks of the direction of writing,
halves of characters."""


class UserError(Exception):
    """Bad input: one sentence with the rule, the value received and what to do next. The command
    exits with 2."""


def first_line(error: BaseException | str) -> str:
    """The first line of what an error says, without the dot or colon at its end: to stand inside a
    sentence.

    An error without a text gives the name of its type, an empty text "".
    """
    return _lines(error)[0].rstrip(".:")


def last_line(error: BaseException | str) -> str:
    """The last line: of an error that another process has passed on, what went wrong there."""
    return _lines(error)[-1]


def _lines(error: BaseException | str) -> list[str]:
    return str(error).strip().splitlines() or [
        "" if isinstance(error, str) else type(error).__name__
    ]


def line_of(frames: Iterable[tuple[str, int]], names: Iterable[str] = ("",)) -> str | None:
    """ "my_layer.py, line 3": the first of these files and lines in a file whose name begins with
    one of `names`."""
    for file, line in frames:
        # What has no file of its own is "<frozen importlib._bootstrap>" and the like.
        if Path(file).name.startswith(tuple(names)) and not file.startswith("<"):
            return f"{Path(file).name.partition(' ')[0]}, line {line}"
    return None


def terminal_text(text: str) -> str:
    """The text as a terminal may get it: what would command the terminal is spelled out, as in
    "\\x1b[2J"."""
    return COMMANDS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def first_problem(error: ValidationError) -> str:
    """ "training.epochs: Input should be greater than 0": the first thing wrong, after its place in
    the content; a name that does not exist goes before one that is missing, which it may be a
    misspelling of."""
    problems = error.errors()
    first = next(
        (problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0]
    )
    place, rule = _place(first), first["msg"].removeprefix("Value error, ")
    missing = [_place(problem) for problem in problems if problem["type"] == "missing"]
    meant = did_you_mean(place, missing).strip() if first["type"] == "extra_forbidden" else ""
    return f"{place or 'the whole'}: {rule}" + (f"; {meant}" if meant else "")


def _place(problem: ErrorDetails) -> str:
    return ".".join(map(str, problem["loc"]))


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """ "did you mean grid? ", to stand before the list of choices; nothing where none of them is
    near."""
    near = nearest(word, choices, most=2, cutoff=0.5)
    return f"did you mean {' or '.join(near)}? " if near else ""


def nearest(word: str, choices: Iterable[str], *, most: int = 1, cutoff: float) -> list[str]:
    """Of the choices the word itself, else those it abbreviates, else the `most` that look most
    like it, by difflib's ratio of at least `cutoff`. Upper and lower case are the same."""
    by_look = {choice.casefold(): choice for choice in sorted(choices)}
    look = word.casefold()
    if look in by_look:
        return [by_look[look]]
    return [choice for known, choice in by_look.items() if _is_abbreviation(look, known)] or [
        by_look[known] for known in difflib.get_close_matches(look, by_look, n=most, cutoff=cutoff)
    ]


def _is_abbreviation(word: str, name: str) -> bool:
    """Whether the word is the initials of a name of several words: "training.lr" of
    "training.learning_rate"."""
    (before, _, last), (place, _, full) = word.rpartition("."), name.rpartition(".")
    return before == place and "_" in full and last == "".join(part[:1] for part in full.split("_"))
