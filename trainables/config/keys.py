"""Dotted keys of a config's JSON data: "training.epochs" is the key "epochs" of its part
"training"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from trainables.errors import UserError, first_problem

Config = TypeVar("Config")

NO_SETTINGS = ("schema_version", "kind")
"""Keys that say what the content is, and are no settings of it."""


def dotted_keys(content: Mapping[str, Any]) -> list[str]:
    """Every key, those of whole parts such as `training.averaging` as well, each before the keys
    inside it."""
    return [key for key, _ in _items(content)]


def flat_values(content: Mapping[str, Any]) -> dict[str, Any]:
    """The single settings of a config by their dotted keys: whole parts are left out."""
    return {
        key: value
        for key, value in _items(content)
        if key not in NO_SETTINGS and not isinstance(value, dict)
    }


def _items(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        yield prefix + key, value
        if isinstance(value, dict):
            yield from _items(value, f"{prefix}{key}.")


def value_at(content: Mapping[str, Any], key: str) -> Any:
    """The value of a dotted key. Raises KeyError where the content has no such key."""
    for part in key.split("."):
        content = content[part]
    return content


def with_values(content: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the content with other values at these dotted keys, whose parts it has.

    Raises UserError for a key inside a part that another one makes a single value.
    """
    replaced = dict(content)
    for key, value in values.items():
        *parts, last = key.split(".")
        place = replaced
        for depth, part in enumerate(parts, 1):
            if not isinstance(place[part], Mapping):
                whole = ".".join(parts[:depth])
                raise UserError(
                    f"{whole!r} is the single value {place[part]!r}, so {key!r} cannot be set "
                    f"inside it"
                )
            place[part] = dict(place[part])
            place = place[part]
        place[last] = value
    return replaced


def replaced(
    content: Mapping[str, Any],
    values: Mapping[str, Any],
    read: Callable[[Any], Config],
    asked_by: str,
) -> Config:
    """The config that `read` makes of the content with other values at these dotted keys, which it
    has.

    Raises UserError for a value that cannot be, in a sentence about what `asked_by` does.
    """
    try:
        return read(with_values(content, values))
    except ValidationError as error:
        given = error.errors()[0]["input"]
        got = "" if isinstance(given, Mapping) else f"; got {given!r}"
        problem = f"{first_problem(error)}{got}"
        raise UserError(f"{asked_by} makes a config that cannot be: {problem}") from error
