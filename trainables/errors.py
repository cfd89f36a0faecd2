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
"""How users start the program: `python sweep.py` or, without that file, `python -m sweep`."""
KEPT = "results and checkpoints are kept"
GO_ON = f"run the same command again to resume; {KEPT}."
DIVERGED = "Diverged trials need other settings, such as a lower learning rate."
CONTROL_CHARACTERS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
)
"""Control characters (not tab or line feed), marks of writing direction, and surrogates."""


class UserError(Exception):
    """Bad input: one sentence with the problem, the value and the fix. The command exits with 2."""


def first_line(error: BaseException | str) -> str:
    """Return the first line of an error, without its final dot or colon, for use in a sentence.

    An error without text gives its type's name; an empty string gives "".
    """
    return _lines(error)[0].rstrip(".:")


def last_line(error: BaseException | str) -> str:
    """Return an error's last line, which names the cause if it comes from another process."""
    return _lines(error)[-1]


def _lines(error: BaseException | str) -> list[str]:
    return str(error).strip().splitlines() or [
        "" if isinstance(error, str) else type(error).__name__
    ]


def line_of(frames: Iterable[tuple[str, int]], names: Iterable[str] = ("",)) -> str | None:
    """Return the place of the first traceback frame in a named file, like "my_layer.py, line 3".

    A name in `names` may be the beginning of a file's name.
    """
    for file, line in frames:
        # A frame without a file is named "<frozen importlib._bootstrap>" or similar.
        if Path(file).name.startswith(tuple(names)) and not file.startswith("<"):
            return f"{Path(file).name.partition(' ')[0]}, line {line}"
    return None


def terminal_text(text: str) -> str:
    r"""Return the text with terminal control characters escaped, as in "\x1b[2J"."""
    return CONTROL_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def first_problem(error: ValidationError) -> str:
    """Return the first problem, such as "training.epochs: Input should be greater than 0".

    An unknown key comes first, because it may be the misspelling of a missing key.
    """
    problems = error.errors()
    first = next(
        (problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0]
    )
    key, rule = _key(first), first["msg"].removeprefix("Value error, ")
    missing_keys = [_key(problem) for problem in problems if problem["type"] == "missing"]
    hint = did_you_mean(key, missing_keys).strip() if first["type"] == "extra_forbidden" else ""
    return f"{key or 'content'}: {rule}" + (f"; {hint}" if hint else "")


def _key(problem: ErrorDetails) -> str:
    return ".".join(map(str, problem["loc"]))


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return "did you mean grid? ", to precede a list of choices; "" if none is similar."""
    names = nearest(word, choices, most=2, cutoff=0.5)
    return f"did you mean {' or '.join(names)}? " if names else ""


def nearest(word: str, choices: Iterable[str], *, most: int = 1, cutoff: float) -> list[str]:
    """Return the choice equal to `word`, else choices that `word` abbreviates, else similar ones.

    Similarity is difflib's ratio; `most` limits similar choices. Case is ignored.
    """
    by_key = {choice.casefold(): choice for choice in sorted(choices)}
    key = word.casefold()
    if key in by_key:
        return [by_key[key]]
    return [choice for name, choice in by_key.items() if _is_abbreviation(key, name)] or [
        by_key[name] for name in difflib.get_close_matches(key, by_key, n=most, cutoff=cutoff)
    ]


def _is_abbreviation(word: str, name: str) -> bool:
    (group, _, letters), (section, _, key) = word.rpartition("."), name.rpartition(".")
    return group == section and "_" in key and letters == "".join(s[:1] for s in key.split("_"))
