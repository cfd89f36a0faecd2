"""Settings of `--set`. A study trains with each value of `training.learning_rate=5,10`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

from trainables.errors import UserError

Settings = Mapping[str, tuple[Any, ...]]


def parse_settings(texts: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """Return the settings in texts like `key=value,value`. Raises UserError for other texts."""
    settings = {}
    for setting in texts:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise UserError(
                f"--set: {setting!r} is not key=value. For example, --set training.epochs=3"
            )
        settings[key] = setting_values(key, values_in(text))
    return settings


def values_in(text: str) -> list[Any]:
    """Return the values between a text's commas, as JSON if possible, else as texts.

    A text that begins like JSON but is invalid is one value.
    """
    with suppress(ValueError, RecursionError):  # a number may be too long, or nesting too deep
        return json.loads(f"[{text}]") or [text]
    if text.startswith(("[", "{", '"')):
        return [text]
    return [_word(word.strip()) for word in text.split(",")]


def _word(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def as_typed(values: Sequence[Any]) -> str:
    """Return the text that `values_in` reads as these values."""
    plain = [value if isinstance(value, str) else json.dumps(value) for value in values]
    text = ",".join(plain)
    return text if values_in(text) == list(values) else ",".join(map(json.dumps, values))


def setting_values(key: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return a setting's distinct values, sorted.

    Raises UserError for an empty value, and for several values of the seed or of a config section.
    """
    # 5 and 5.0 are one value, True and 1 are two.
    unique_values = list(
        {
            value if type(value) in (int, float) else json.dumps(value): value for value in values
        }.values()
    )
    if len(unique_values) == 1:
        return (unique_values[0],)
    if not unique_values or "" in unique_values:
        raise UserError(
            f"--set: a value of {key} is empty. Put one comma between values, as in {key}=1,2"
        )
    if key == "seed":
        raise UserError(
            "--set: seed takes one value. Use --seeds N to train each setting with N seeds."
        )
    if any(isinstance(value, dict) for value in unique_values):
        raise UserError(
            f"--set: {key} is a section of the config and takes one value. Give one value, or "
            f"write a study."
        )
    numbers = all(type(value) in (int, float) for value in unique_values)
    return tuple(sorted(unique_values) if numbers else sorted(unique_values, key=json.dumps))


def swept_keys(settings: Settings) -> list[str]:
    """Return the keys with several values, sorted."""
    return sorted(key for key, values in settings.items() if len(values) > 1)


def combinations(settings: Settings) -> list[dict[str, Any]]:
    """Return all combinations of values."""
    keys = sorted(settings)
    return [
        dict(zip(keys, values, strict=True)) for values in product(*(settings[key] for key in keys))
    ]
