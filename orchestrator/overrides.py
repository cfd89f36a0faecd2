"""What `--set` replaces in the configs of a plan: dotted keys and their values."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from trainables.any_config import AnyConfig, read_config
from trainables.errors import UserError

FIXED_KEYS = ("schema_version", "kind", "corpus.name", "corpus.sha256")
"""What `--set` may not touch: with another value, the config would lie about the text or the program."""


def parse_overrides(settings: Sequence[str]) -> dict[str, Any]:
    """`key=value` texts as a dictionary; values are read as JSON where they are JSON, else as text."""
    overrides: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise UserError(f"--set takes key=value, for example --set training.epochs=3; got {setting!r}")
        try:
            overrides[key] = json.loads(text)
        except json.JSONDecodeError:
            overrides[key] = text
    return overrides


def overrides_json(overrides: Mapping[str, Any]) -> str:
    """Overrides as canonical JSON: what tells variants of a study apart."""
    return json.dumps(overrides, sort_keys=True, separators=(",", ":"))


def apply_overrides(configs: Sequence[AnyConfig], overrides: Mapping[str, Any]) -> list[AnyConfig]:
    """The configs with dotted keys replaced.

    Raises UserError for a key that not all of them have, and for a value that one of them cannot have.
    """
    if not overrides:
        return list(configs)
    contents = [config.model_dump(mode="json") for config in configs]
    _require_keys(overrides, [_dotted(content) for content in contents], contents)
    return [_replaced(content, overrides) for content in contents]


def _require_keys(overrides: Mapping[str, Any], keys: Sequence[list[str]], contents: Sequence[Any]) -> None:
    everywhere = [key for key in keys[0] if all(key in others for others in keys)]
    for key in overrides:
        if key in FIXED_KEYS:
            raise UserError(f"--set cannot change {key!r}: it follows from the program, the study or --corpus")
        if key == "output_layer.name":
            raise UserError(
                "--set cannot change an output layer's name alone, as the other settings belong to the old one: "
                """replace the whole, for example --set 'output_layer={"name": "softmax"}'"""
            )
        if key in everywhere:
            continue
        without = [content for content, own in zip(contents, keys, strict=True) if key not in own]
        if len(without) < len(contents):
            raise UserError(
                f"--set takes keys that every trial has, and {len(without)} of {len(contents)} trials, such as one of "
                f"{_what(without[0])}, have no {key!r}: write a study of those that do"
            )
        near = difflib.get_close_matches(key, everywhere, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise UserError(f"--set knows no key {key!r}: {hint}Keys are those of the config, as --dry-run prints it")


def _what(content: Mapping[str, Any]) -> str:
    layer = content.get("output_layer")
    return f"output layer {layer['name']}" if layer else f"kind {content['kind']}"


def _replaced(content: dict[str, Any], overrides: Mapping[str, Any]) -> AnyConfig:
    for key, value in overrides.items():
        *parents, last = key.split(".")
        place = content
        for parent in parents:
            place = place[parent]
        place[last] = value
    try:
        return read_config(content)
    except ValidationError as error:
        first = error.errors()[0]
        place_named = _known_part(first["loc"], content)
        if not place_named:
            raise UserError(
                f"--set makes a config that cannot be: {first['msg'].removeprefix('Value error, ')}"
            ) from error
        raise UserError(f"--set cannot give {place_named} the value {first['input']!r}: {first['msg']}") from error


def _dotted(content: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Every key, also those of whole parts such as `training.averaging`, which can be set as JSON objects."""
    keys = []
    for key, value in content.items():
        keys.append(prefix + key)
        if isinstance(value, dict):
            keys += _dotted(value, f"{prefix}{key}.")
    return keys


def _known_part(location: Sequence[int | str], content: Any) -> str:
    """The key that an error is about; a union's error also names the member that was tried, which is no key."""
    keys = []
    for part in location:
        if isinstance(content, dict) and part in content:
            keys.append(str(part))
            content = content[part]
    return ".".join(keys)
