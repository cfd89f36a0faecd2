"""Compares the documents that commands print with the tables of docs/json.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support.command import ROOT

PAGE = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
KEYS: dict[str, set[str]] = {
    heading: set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    for heading, text in re.findall(r"^##+ (.+)\n((?:(?!^##).*\n)*)", PAGE, re.MULTILINE)
}
EVERY_EVENT = KEYS.pop("Events of a run")


def documented(document: Any, kind: str) -> Iterator[str]:
    """Yield the documented keys that a document has. Other keys fail."""
    assert (document.pop("schema"), document.pop("kind")) == (1, kind)
    keys = KEYS[kind] | (EVERY_EVENT if "time" in document else set())

    def visit(value: Any, path: str) -> Iterator[str]:
        if path in keys:
            yield path
        elif isinstance(value, dict):
            for name, item in value.items():
                yield from visit(item, f"{path}.{name}".lstrip("."))
        elif isinstance(value, list):
            for item in value:
                yield from visit(item, f"{path}[]")
        else:
            others = re.sub(r"(?<=\[\]\.).*", "*", path)
            assert others in keys, path
            yield others

    yield from visit(document, "")


def check(text: str, kind: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    document = json.loads(text, parse_constant=refuse)
    assert {*documented(dict(document), kind)} == KEYS[kind]
    return document
