"""Durations, counts, lists, file names and JSON documents as text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard

from pydantic_core import to_jsonable_python

from trainables.corpora import NO_TEXT

PLAIN_NAME = re.compile(r"\w[\w ._=,+@()-]*")
LONGEST_NAME, LONGEST_STEM = 150, 40
"""Names of up to LONGEST_NAME bytes stay unchanged. Others keep LONGEST_STEM characters."""


SHORT_ID = 12
SCHEMA = 1
"""Version of the JSON documents. Within a version, keys are only added: see docs/json.md."""


def short_id(trial_id: str) -> str:
    """Return the first digits of a trial's id, enough to identify it."""
    return trial_id[:SHORT_ID]


def is_number(value: object) -> TypeGuard[float]:
    """Return whether `value` is a number, including infinity and NaN but not bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def duration(seconds: float) -> str:
    """Return a rounded duration: "40 s", "12 min", "3.5 h", "1,160 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 10 else f"{hours:,.0f} h"


def on_corpus(corpus: str) -> str:
    """Return ", corpus ptb" to follow a scale, or "" if the study reads no text."""
    return "" if corpus == NO_TEXT.name else f", corpus {corpus}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: "1 trial", "72 trials"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def byte_count(number: float) -> str:
    """Return a number of bytes: "0.0 kB", "12.3 MB", "1.5 GB"."""
    if number >= 1e8:
        return f"{number / 1e9:,.1f} GB"
    return f"{number / 1e6:,.1f} MB" if number >= 5e4 else f"{number / 1e3:,.1f} kB"


def quoted(name: str) -> str:
    """Return a name for a sentence: in quotation marks if it is not a single word."""
    return f"“{name}”" if set(" ,:") & set(name) else name


def too_few(fewest: int, noun: str, count: int) -> str:
    """Return "at least 5 pairs are needed, but there are 2" if `count` is too small, else ""."""
    if count >= fewest:
        return ""
    return f"at least {fewest} {noun} are needed, but there {'is' if count == 1 else 'are'} {count}"


def listed(names: Iterable[str]) -> str:
    """Return "a", "a and b" or "a, b and c". `names` must not be empty."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def some_of(names: Sequence[str], most: int) -> str:
    """Return the first `most` names and a count of the others: "a, b and 5 more"."""
    suffix = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + suffix


def one_line(text: str, *, most: int | None = None) -> str:
    """Return the text on one line, cut to `most` characters.

    White space and unprintable characters become single spaces.
    """
    # Cut first: the text may be of any size.
    head = text if most is None else text[: 4 * most]
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in head).split())
    if most is None or (len(line) <= most and len(head) == len(text)):
        return line
    return f"{line[: most - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"


def json_document(kind: str, content: Mapping[str, object], *, indent: int | None = 1) -> str:
    """Return a JSON document of this kind, in ASCII.

    NaN and infinity become null, and times ISO 8601.
    """
    document = {"schema": SCHEMA, "kind": kind, **content}
    text = json.dumps(document, default=to_jsonable_python)
    return json.dumps(json.loads(text, parse_constant=lambda _: None), indent=indent)


def file_name(text: str) -> str:
    """Return a safe file or folder name for any text.

    A text of plain characters stays unchanged. Other texts keep their plain characters and get a
    hash, so that names differ.
    """
    if PLAIN_NAME.fullmatch(text) and len(text.encode()) <= LONGEST_NAME:
        return text
    stem = re.sub(r"[^\w ._=,+@()-]", "_", text)[:LONGEST_STEM].lstrip(". =,+@()-")
    return f"{stem}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}".lstrip(
        "-"
    )
