"""What the trials of a study are called, so that trials of different settings are never taken for
seeds of one."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.words import one_line
from search_spaces.study import Study, describe, group_of
from trainables.config import AnyConfig, flat_values, identity
from trainables.errors import UserError

LONGEST_GROUP, LONGEST_COMPLETION = 100, 80
"""Characters. What is longer is cut, or not said in words."""
HASH_DIGITS = 8
"""Digits of a setting's hash behind a label."""


def trial_names(
    study: Study,
    written: Sequence[AnyConfig],
    resolved: Sequence[AnyConfig],
    variety: Iterable[AnyConfig],
) -> list[str]:
    """The configs' labels, whatever the label function gives: on one line, with what varies among
    the trials that it calls alike ("softmax, training.learning_rate=20 seed=1"), or with the
    setting's hash ("mine #1a2b3c4d seed=1").

    `written` are the configs as the study has them, `resolved` as they are trained, and `variety`
    all trials of the study, so that a trial has one name whether or not its scale runs the others.
    Raises UserError for a label that is no text."""
    variety_groups = [(*_group(study, config), config) for config in variety]
    varying = varying_settings((group, _settings(config)) for group, _, config in variety_groups)
    trials = Counter(_completed(group, config, varying) for group, _, config in variety_groups)
    labels = [_group(study, config) for config in written]
    completed = [
        _completed(group, config, varying)
        for (group, _), config in zip(labels, written, strict=True)
    ]
    groups = told_apart(
        [group for group, _ in completed], [_hash_of(config) for config in resolved]
    )
    return [
        f"{group} seed={config.seed}" if says_seed or trials[setting] > 1 else group
        for group, (_, says_seed), setting, config in zip(
            groups, labels, completed, written, strict=True
        )
    ]


def setting_hash(content: Mapping[str, Any]) -> str:
    """SHA-256 of a config's JSON data without its seed, as 64 hexadecimal digits: the same for
    trials that differ in their seed alone."""
    setting = {key: value for key, value in identity(content).items() if key != "seed"}
    return hashlib.sha256(
        json.dumps(setting, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def varying_settings(trials: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, list[str]]:
    """By group, the dotted keys besides the seed in which its trials differ; groups of one setting
    are left out, and those that it would take too many words to tell apart.

    `trials` are the group and the settings, by dotted key, of each.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for group, settings in trials:
        groups.setdefault(group, []).append(settings)
    varying = {}
    for group, members in groups.items():
        keys = dict.fromkeys(key for settings in members for key in settings if key != "seed")
        differing = [
            key
            for key in keys
            if any(settings.get(key) != members[0].get(key) for settings in members)
        ]
        if differing and all(
            len(_completion(settings, differing)) <= LONGEST_COMPLETION for settings in members
        ):
            varying[group] = differing
    return varying


def completed_group(
    group: str, settings: Mapping[str, Any], varying: Mapping[str, Sequence[str]]
) -> str:
    """The group with what varies among its trials: "softmax, training.learning_rate=20"."""
    return group + _completion(settings, varying.get(group, ()))


def with_settings(name: str, config: AnyConfig, keys: Sequence[str]) -> str:
    """The trial's name with these of its settings behind its group: "softmax,
    training.learning_rate=20 seed=1"."""
    group = group_of(name)
    return group + _completion(_settings(config), keys) + name.removeprefix(group)


def has_any(config: AnyConfig, keys: Sequence[str]) -> bool:
    """Whether the trial has one of these settings, by dotted key."""
    return not _settings(config).keys().isdisjoint(keys)


def without_settings(group: str, keys: Sequence[str]) -> str:
    """The group as it was before `with_settings`, or the text that it is where it has none of
    them."""
    for key in reversed(keys):
        group = group.rpartition(f", {key}=")[0] or group
    return group


def differing_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of a trial's settings those that its name gives another value: it has them as the study
    writes them, for paper scale."""
    differing = {}
    for key, value in settings.items():
        before, _, given = name.rpartition(f", {key}=")
        rest = given.removeprefix(_shown(value))
        if before and (rest == given or rest[:1] not in ("", ",", " ")):
            differing[key] = value
    return differing


def told_apart(
    groups: Sequence[str], settings: Sequence[str], digits: int = HASH_DIGITS
) -> list[str]:
    """Return the groups; a group that several settings share ends in each setting's hash.

    `settings` are the hashes of the same trials.
    """
    owners = defaultdict[str, set[str]](set)
    for group, setting in zip(groups, settings, strict=True):
        owners[group].add(setting)
    names = [
        group if len(owners[group]) == 1 else f"{group} #{setting[:digits]}"
        for group, setting in zip(groups, settings, strict=True)
    ]
    # A marked group may be another setting's label, and two hashes may begin alike.
    return names if names == list(groups) else told_apart(names, settings, 2 * digits)


def _group(study: Study, config: AnyConfig) -> tuple[str, bool]:
    """What the label says apart from the seed, and whether it ends in one."""
    label: object = study.label(config)
    if not isinstance(label, str):
        raise UserError(
            f"a trial's name is a text; the label function of {study.name} gives {label!r}: fix it"
        )
    # An entry of a legend that begins with an underscore is not shown.
    text = f" {one_line(label, most=10 * LONGEST_GROUP).lstrip('_ ')}"
    group = group_of(text)
    name = one_line(group, most=LONGEST_GROUP) or one_line(
        group_of(describe(config)), most=LONGEST_GROUP
    )
    return name, group != text


def _completed(
    group: str, config: AnyConfig, varying: Mapping[str, Sequence[str]]
) -> tuple[str, str]:
    """The completed group and the setting, which only together tell it from all others."""
    return completed_group(group, _settings(config), varying), _hash_of(config)


def _hash_of(config: AnyConfig) -> str:
    return setting_hash(config.model_dump(mode="json"))


def _settings(config: AnyConfig) -> dict[str, Any]:
    return {**flat_values(config.model_dump(mode="json")), "kind": config.kind}


def _completion(settings: Mapping[str, Any], keys: Sequence[str]) -> str:
    return one_line("".join(f", {key}={_shown(settings[key])}" for key in keys if key in settings))


def _shown(value: object) -> str:
    """In as few digits as tell it from any other number."""
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
