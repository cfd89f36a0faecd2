"""How durations, counts and lists are put into words, and what is a number, the same in every
room."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TypeGuard

from trainables.corpora import NO_TEXT

PLAIN_NAME = re.compile(r"\w[\w ._=,+@()-]*")
LONGEST_NAME, LONGEST_REST = 150, 40
"""Bytes of a plain name, which leaves room for what is put around it, and characters kept of
another one."""


SHORT_ID = 12


def short_id(trial_id: str) -> str:
    """Return the first digits of a trial's id, which tell it from all others."""
    return trial_id[:SHORT_ID]


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is one, infinite or NaN too; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def duration(seconds: float) -> str:
    """About so long, in words for a person: "40 s", "12 min", "3.5 h", "1,160 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 10 else f"{hours:,.0f} h"


def on_corpus(corpus: str) -> str:
    """ ", corpus ptb" to stand behind a scale; nothing for studies that read no text."""
    return "" if corpus == NO_TEXT.name else f", corpus {corpus}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """ "1 trial", "72 trials"; `plural` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"; of at least one name."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def some_of(names: Sequence[str], most: int) -> str:
    """ "a, b and 5 more": at most so many of the names, and how many there are besides."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def one_line(text: str, *, most: int | None = None) -> str:
    """The text on one line, white space and what no terminal should be sent as single spaces; cut
    after `most` characters."""
    # Cut first: a text that somebody else has made may be of any size.
    head = text if most is None else text[: 4 * most]
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in head).split())
    cut = most is not None and (len(line) > most or len(head) < len(text))
    return (
        f"{line[: most - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}" if cut and most is not None else line
    )


def file_name(text: str) -> str:
    """What a file or folder is called after a text, whatever that holds: a plain text is its name;
    of any other it is what is plain in it, and a hash that keeps different ones apart."""
    if PLAIN_NAME.fullmatch(text) and len(text.encode()) <= LONGEST_NAME:
        return text
    rest = re.sub(r"[^\w ._=,+@()-]", "_", text)[:LONGEST_REST].lstrip(". =,+@()-")
    return f"{rest}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}".lstrip(
        "-"
    )
