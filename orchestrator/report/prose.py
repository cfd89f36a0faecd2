"""Templates with the words of pages."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2

from orchestrator import words
from orchestrator.analysis import SIGNIFICANCE
from orchestrator.report import formats
from trainables.errors import PROGRAM

TEMPLATES = Path(__file__).parent / "templates"
NEEDLESS_SPACE = re.compile(r"(?<=[(\[]) | (?=[,.;:)\]]+(?:\s|$))")
FILTERS = vars(words) | vars(formats)
"""Filters of the templates: the functions of `words` and `formats`."""


@cache
def template(name: str) -> jinja2.Template:
    """Return a template of this package by file name. HTML templates escape every text."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=jinja2.select_autoescape(("html.j2",)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=name.endswith("html.j2"),
        lstrip_blocks=name.endswith("html.j2"),
    )
    templates.globals |= {"program": PROGRAM, "SIGNIFICANCE": SIGNIFICANCE}
    templates.filters |= FILTERS
    return templates.get_template(name)


def one_line(text: str) -> str:
    """Return a text with single spaces, and no space before punctuation or inside brackets."""
    return NEEDLESS_SPACE.sub("", " ".join(text.split()))


def cautions(macro: str, **numbers: Any) -> tuple[str, ...]:
    """Return the sentences of a macro of cautions.j2."""
    text = getattr(template("cautions.j2").module, macro)(numbers)
    return tuple(map(one_line, re.split(r"(?m)^\* ", text)[1:]))


def prose(name: str, **values: Any) -> str:
    """Return a plain-text template with these values, as one line."""
    return one_line(template(name).render(values))


@cache
def sorting() -> dict[str, str]:
    """Return the script that sorts tables, and its hash.

    A page's policy allows no script with another hash.
    """
    script = template("sort.js").render()
    return {
        "script": script,
        "script_hash": f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
    }
