"""Apply the values of `--set` to the configs of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainables.config import AnyConfig, dotted_keys, flat_values, read_config, replaced
from trainables.errors import UserError, did_you_mean

FIXED_KEYS = ("schema_version", "kind", "corpus.name", "corpus.sha256")
"""Keys that `--set` must not change, because they describe the text or the program."""


def apply_settings(configs: Sequence[AnyConfig], values: Mapping[str, Any]) -> list[AnyConfig]:
    """Return the configs with these values of dotted keys.

    Kinds of trials without a key stay unchanged: the true matrix of a generated language has no
    `training.epochs`. Raises UserError for an invalid value, an unknown key, or a key that only
    some trials of a kind have.
    """
    if not values:
        return list(configs)
    contents = [config.model_dump(mode="json") for config in configs]
    for key in values:
        _require_key(key, contents)
    return [
        replaced(
            content,
            {key: values[key] for key in dotted_keys(content) if key in values},
            read_config,
            "--set",
        )
        for content in contents
    ]


def _require_key(key: str, contents: Sequence[Mapping[str, Any]]) -> None:
    if key in FIXED_KEYS:
        raise UserError(
            f"--set: cannot change {key!r}. The program, the study or --corpus determines it."
        )
    if key == "output_layer.name":
        raise UserError(
            "--set: cannot change only the output layer's name, which decides the other settings. "
            """Replace the whole layer, for example --set 'output_layer={"name": "softmax"}'"""
        )
    contents_with_key = [content for content in contents if key in dotted_keys(content)]
    if not contents_with_key:
        settings = set().union(*map(flat_values, contents))
        raise UserError(
            f"--set: no trial has the key {key!r}: {did_you_mean(key, settings)}"
            f"Print the keys with --dry-run --format json."
        )
    kinds = {content["kind"] for content in contents_with_key}
    contents_without_key = [
        content
        for content in contents
        if content["kind"] in kinds and key not in dotted_keys(content)
    ]
    if contents_without_key:
        raise UserError(
            f"--set: {len(contents_without_key)} trials have no {key!r}, for example those with "
            f"{_part(contents_without_key[0], key)}. Write a study of trials with this key."
        )


def _part(content: Mapping[str, Any], key: str) -> str:
    name = key.partition(".")[0]
    part = content.get(name)
    if isinstance(part, dict) and "name" in part:
        return f"{name.replace('_', ' ')} {part['name']}"
    return f"kind {content['kind']}"
