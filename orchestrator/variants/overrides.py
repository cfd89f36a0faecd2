"""What `--set` replaces in the configs of a plan: dotted keys and their values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from orchestrator.variants.swept_settings import as_setting, values_in
from trainables.config import AnyConfig, dotted_keys, read_config, replaced, value_at
from trainables.errors import UserError, did_you_mean

FIXED_KEYS = ("schema_version", "kind", "corpus.name", "corpus.sha256")
"""What `--set` may not touch: with another value, the config would lie about the text or the
program."""


def parse_overrides(settings: Sequence[str]) -> dict[str, Any]:
    """`key=value` texts as a dictionary; values are read as JSON where they are JSON, else as text,
    and several with commas between them as a tuple. Raises UserError for another form."""
    overrides: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise UserError(
                f"--set takes key=value, for example --set training.epochs=3; got {setting!r}"
            )
        # What a user brought, such as --contexts, has the name of a file, commas and all.
        overrides[key] = text if key.startswith("--") else as_setting(key, values_in(text))
    return overrides


def overrides_json(overrides: Mapping[str, Any]) -> str:
    """Overrides as canonical JSON: what tells variants of a study apart."""
    return json.dumps(overrides, sort_keys=True, separators=(",", ":"))


def read_overrides(text: str) -> dict[str, Any]:
    """What `overrides_json` wrote, with lists for tuples; nothing where the text is anything
    else."""
    content: Any = None
    with suppress(ValueError, RecursionError):  # a store may hold any text
        content = json.loads(text)
    return content if isinstance(content, dict) else {}


def apply_overrides(configs: Sequence[AnyConfig], overrides: Mapping[str, Any]) -> list[AnyConfig]:
    """The configs with dotted keys replaced.

    A key is replaced in every kind of trial that knows it: the true matrix of a generated language
    is not trained, and `training.epochs` is nothing to it. Raises UserError for a key that not all
    trials of a kind have, or none, and for a value that one of them cannot have."""
    if not overrides:
        return list(configs)
    contents = [config.model_dump(mode="json") for config in configs]
    keys = [dotted_keys(content) for content in contents]
    _require_keys(overrides, keys, contents)
    return [
        replaced(
            content,
            {key: value for key, value in overrides.items() if key in own},
            read_config,
            "--set",
        )
        for content, own in zip(contents, keys, strict=True)
    ]


def _require_keys(
    overrides: Mapping[str, Any], keys: Sequence[list[str]], contents: Sequence[Any]
) -> None:
    for key in overrides:
        if key in FIXED_KEYS:
            raise UserError(
                f"--set cannot change {key!r}: it follows from the program, the study or --corpus"
            )
        if key == "output_layer.name":
            raise UserError(
                "--set cannot change an output layer's name alone, as the other settings belong to "
                "the old one: "
                """replace the whole, for example --set 'output_layer={"name": "softmax"}'"""
            )
        kinds = {content["kind"] for content, own in zip(contents, keys, strict=True) if key in own}
        if not kinds:
            raise UserError(
                f"--set knows no key {key!r}: {did_you_mean(key, _single_keys(contents))}Keys are "
                f"those of the config, "
                "as --dry-run --format json prints it"
            )
        of_them = [
            (content, own)
            for content, own in zip(contents, keys, strict=True)
            if content["kind"] in kinds
        ]
        without = [content for content, own in of_them if key not in own]
        if without:
            raise UserError(
                f"--set takes keys that every trial has, and {len(without)} of {len(of_them)} "
                f"trials, such as one of "
                f"{_what(without[0], key)}, have no {key!r}: write a study of those that do"
            )


def _single_keys(contents: Sequence[Mapping[str, Any]]) -> set[str]:
    """The keys of single values, and not of whole parts such as `training`."""
    return {
        key
        for content in contents
        for key in dotted_keys(content)
        if not isinstance(value_at(content, key), Mapping)
    }


def _what(content: Mapping[str, Any], key: str) -> str:
    """The part of a trial that decides whether it has the key: "output layer softmax"."""
    name = key.partition(".")[0]
    part = content.get(name)
    if isinstance(part, dict) and "name" in part:
        return f"{name.replace('_', ' ')} {part['name']}"
    return f"kind {content['kind']}"
