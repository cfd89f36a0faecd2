"""The templates that hold the words of pages."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2

from trainables.errors import PROGRAM

TEMPLATES = Path(__file__).parent / "templates"


@cache
def template(name: str) -> jinja2.Template:
    """A template of this package by its file's name; those of HTML escape every text."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=jinja2.select_autoescape(("html.j2",)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["program"] = PROGRAM
    return templates.get_template(name)


def prose(name: str, **values: Any) -> str:
    """The paragraph in a template of plain text, as one line, with these values in it."""
    return " ".join(template(name).render(values).splitlines())


@cache
def sorting() -> dict[str, str]:
    """The script by which a page's tables are sorted, and its hash: a page lets no other script
    run."""
    script = template("sort.js").render()
    return {
        "script": script,
        "script_hash": f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
    }
