"""Settings that `--set` gives several values: with `training.learning_rate=5,10` a study is run at
both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from trainables.errors import UserError

JSON = json.JSONDecoder()


def values_in(text: str) -> list[Any]:
    """The values that a text has between its commas, JSON where they are JSON, else text. A whole
    that is JSON is one value, and so is one that only begins like it."""
    try:
        return [json.loads(text)]
    except (
        ValueError,
        RecursionError,
    ):  # a number or nesting that is too long to be read is no JSON either
        pass
    values, place = [], 0
    while place <= len(text):
        value, place, is_json = _first(text, place)
        if not is_json and value.startswith(("[", "{", '"')):
            return [text]
        values.append(value)
    return values


def _first(text: str, place: int) -> tuple[Any, int, bool]:
    """The value that begins there, where the next one does, and whether it is JSON; else it is a
    text."""
    start = len(text) - len(text[place:].lstrip())
    try:
        value, end = JSON.raw_decode(text, start)
        rest = text[end:].lstrip()
        if not rest or rest.startswith(","):
            return value, len(text) - len(rest) + 1, True
    except (ValueError, RecursionError):
        pass
    word, _, rest = text[start:].partition(",")
    return word.strip(), start + len(word) + 1, False


def as_setting(key: str, values: Iterable[Any]) -> Any:
    """Of several values a tuple, without repetitions, numbers in ascending order; of one, that
    value.

    Raises UserError for what cannot have several: the seed, a whole part of a config, and nothing
    at all."""
    different = list({_sameness(value): value for value in values}.values())
    if len(different) == 1:
        return different[0]
    if not different or "" in different:
        raise UserError(
            f"--set takes values with a comma between them, such as {key}=1,2; one of {key}'s is "
            f"empty"
        )
    if key == "seed":
        raise UserError(
            "--set gives seed one value: type --seeds N, and each setting is trained with N seeds"
        )
    if any(isinstance(value, dict) for value in different):
        raise UserError(
            f"--set takes several values of a single setting, and {key} is a whole part of a "
            f"config: give it one "
            "value, or write a study of them"
        )
    # Whatever the order, it is one variant: numbers ascend, others stand in the order of their
    # JSON.
    numbers = all(type(value) in (int, float) for value in different)
    return tuple(sorted(different) if numbers else sorted(different, key=json.dumps))


def _sameness(value: Any) -> Any:
    """5 and 5.0 are one value, True and 1 are two."""
    return value if type(value) in (int, float) else json.dumps(value)


def as_typed(setting: Any) -> str:
    """What `values_in` reads as this setting: several values, a tuple, with commas between them."""
    if isinstance(setting, tuple):
        text = ",".join(map(as_typed, setting))
        return text if values_in(text) == list(setting) else ",".join(map(json.dumps, setting))
    is_plain = (
        isinstance(setting, str) and setting == setting.strip() and values_in(setting) == [setting]
    )
    return setting if is_plain and isinstance(setting, str) else json.dumps(setting)


def swept_keys(overrides: Mapping[str, Any]) -> list[str]:
    """The dotted keys that have several values, in alphabetical order: the same however they were
    typed."""
    return sorted(key for key, value in overrides.items() if isinstance(value, tuple))


def combinations(overrides: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The overrides with one value of each key: once for every combination of those that have
    several."""
    keys = swept_keys(overrides)
    return [
        {**overrides, **dict(zip(keys, values, strict=True))}
        for values in product(*(overrides[k] for k in keys))
    ]
