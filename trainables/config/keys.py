"""Dotted keys of a config's JSON data, such as "training.epochs"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from trainables.errors import UserError, first_problem

Config = TypeVar("Config")

NO_SETTINGS = ("schema_version", "kind")
VARIANT = ("study", "scale", "corpus", "overrides")
LEADING = ("trial_id", "setting", "name", "state", "attempt", "cause")
COLUMNS = {*VARIANT, *LEADING, "group", "side", "stage", "epoch"}
"""Columns of the tables of results: no setting of a user and no metric has these names."""


def dotted_keys(content: Mapping[str, Any]) -> list[str]:
    """Return the dotted keys of all sections and settings. A section precedes its settings."""
    return [key for key, _ in _items(content)]


def flat_values(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every setting by dotted key, without schema_version and kind."""
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
    """Return the value at a dotted key. Raises KeyError."""
    for part in key.split("."):
        content = content[part]
    return content


def epoch_count(content: Mapping[str, Any]) -> int | None:
    """Return a config's number of epochs; None if it has no such setting."""
    section = content.get("training")
    epochs = (section if isinstance(section, Mapping) else content).get("epochs")
    return epochs if isinstance(epochs, int) else None


def with_values(content: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `content` with the new `values`, given by dotted key.

    The sections in a key must exist. Raises UserError if one of them is a single value.
    """
    result = dict(content)
    for key, value in values.items():
        *parts, last = key.split(".")
        section = result
        for depth, part in enumerate(parts, 1):
            if not isinstance(section[part], Mapping):
                section_key = ".".join(parts[:depth])
                raise UserError(
                    f"{key!r} cannot be set: {section_key!r} is not a section but {section[part]!r}"
                )
            section[part] = dict(section[part])
            section = section[part]
        section[last] = value
    return result


def replaced(
    content: Mapping[str, Any],
    values: Mapping[str, Any],
    read: Callable[[Any], Config],
    source: str,
) -> Config:
    """Return the config that `read` makes of `content` with the new `values`.

    Raises UserError for an invalid value. The message begins with `source`.
    """
    try:
        return read(with_values(content, values))
    except ValidationError as error:
        value = error.errors()[0]["input"]
        received = "" if isinstance(value, Mapping) else f"; got {value!r}"
        problem = f"{first_problem(error)}{received}"
        raise UserError(f"{source} makes an invalid config: {problem}") from error
