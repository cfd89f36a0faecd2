"""Names of trials. A setting is a config without its seed; different settings differ in name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.words import one_line
from search_spaces.study import Study, describe, group_of
from trainables.config import AnyConfig, flat_values, identity, json_sha256
from trainables.errors import UserError

LONGEST_GROUP, LONGEST_COMPLETION = 100, 80
"""Lengths in characters."""
HASH_DIGITS = 8


def trial_names(
    study: Study, configs: Sequence[AnyConfig], variety: Iterable[AnyConfig]
) -> list[str]:
    """Return one-line names from the study's labels, made unique for each setting.

    Settings with equal labels get the keys in which they differ ("softmax,
    training.learning_rate=20 seed=1") or a hash ("mine #1a2b3c4d seed=1"). `variety` has all trials
    of the study at this scale, so a trial has the same name for every choice of `configs`. Raises
    UserError for a label that is not a string.
    """
    # A small scale may make trials equal.
    trials = {config.trial_id: config for config in (*variety, *configs)}.values()
    labels, has_seed = zip(*(_group(study, config) for config in trials), strict=True)
    settings = [_settings(config) for config in trials]
    varying_keys = varying_settings(zip(labels, settings, strict=True))
    groups = [
        completed_group(label, values, varying_keys)
        for label, values in zip(labels, settings, strict=True)
    ]
    if len({*labels}) == 1 and study.is_own:  # "width=64", not "Mlp, width=64"
        groups = [group.removeprefix(f"{labels[0]}, ") for group in groups]
    hashes = [setting_hash(config.model_dump(mode="json")) for config in trials]
    # Only the group and the hash together are unique.
    keys = list(zip(groups, hashes, strict=True))
    seeds = Counter(keys)
    names = {
        config.trial_id: f"{name} seed={config.seed}" if with_seed or seeds[key] > 1 else name
        for config, name, with_seed, key in zip(
            trials, told_apart(groups, hashes), has_seed, keys, strict=True
        )
    }
    return [names[config.trial_id] for config in configs]


def setting_hash(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 (64 hexadecimal digits) of a config's JSON data without its seed."""
    setting = {key: value for key, value in identity(content).items() if key != "seed"}
    return json_sha256(setting)


def distinct_settings(configs: Iterable[AnyConfig]) -> set[str]:
    """Return the hashes of the configs' settings; seeds of one setting count once."""
    return {setting_hash(config.model_dump(mode="json")) for config in configs}


def varying_settings(trials: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return the dotted keys, except the seed, in which the trials of each group differ.

    `trials` are pairs of a group and a trial's settings by dotted key. Omits groups of one setting,
    or with differences too long for a name.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for group, settings in trials:
        groups.setdefault(group, []).append(settings)
    varying_keys = {}
    for group, members in groups.items():
        keys = dict.fromkeys(key for settings in members for key in settings if key != "seed")
        differing_keys = [
            key
            for key in keys
            if any(settings.get(key) != members[0].get(key) for settings in members)
        ]
        if differing_keys and all(
            len(_completion(settings, differing_keys)) <= LONGEST_COMPLETION for settings in members
        ):
            varying_keys[group] = differing_keys
    return varying_keys


def completed_group(
    group: str, settings: Mapping[str, Any], varying_keys: Mapping[str, Sequence[str]]
) -> str:
    """Return the group's name with its varying settings: "softmax, training.learning_rate=20"."""
    return group + _completion(settings, varying_keys.get(group, ()))


def with_settings(name: str, config: AnyConfig, keys: Sequence[str]) -> str:
    """Return the name with these settings after its group: "softmax, model.layers=2 seed=1"."""
    group = group_of(name)
    return group + _completion(_settings(config), keys) + name.removeprefix(group)


def has_any(config: AnyConfig, keys: Sequence[str]) -> bool:
    """Return whether the config has any of `keys`."""
    return not _settings(config).keys().isdisjoint(keys)


def without_settings(group: str, keys: Sequence[str]) -> str:
    """Return the group without the settings that `with_settings` added, if any."""
    for key in reversed(keys):
        group = group.rpartition(f", {key}=")[0] or group
    return group


def told_apart(
    groups: Sequence[str], settings: Sequence[str], digits: int = HASH_DIGITS
) -> list[str]:
    """Return each trial's group, with a hash of its setting if the group has several settings.

    `settings` has each trial's `setting_hash`.
    """
    owners = defaultdict[str, set[str]](set)
    for group, setting in zip(groups, settings, strict=True):
        owners[group].add(setting)
    names = [
        group if len(owners[group]) == 1 else f"{group} #{setting[:digits]}"
        for group, setting in zip(groups, settings, strict=True)
    ]
    # The new name may be another setting's label, and two hashes may begin with the same digits.
    return names if names == list(groups) else told_apart(names, settings, 2 * digits)


def _group(study: Study, config: AnyConfig) -> tuple[str, bool]:
    label: object = study.label(config)
    if not isinstance(label, str):
        raise UserError(
            f"study {study.name}: its label function returns {label!r}. Return a string."
        )
    # Legends do not show an entry that begins with an underscore.
    text = f" {one_line(label, most=10 * LONGEST_GROUP).lstrip('_ ')}"
    group = group_of(text)
    name = one_line(group, most=LONGEST_GROUP) or one_line(
        group_of(describe(config)), most=LONGEST_GROUP
    )
    return name, group != text


def _settings(config: AnyConfig) -> dict[str, Any]:
    return {**flat_values(config.model_dump(mode="json")), "kind": config.kind}


def _completion(settings: Mapping[str, Any], keys: Sequence[str]) -> str:
    return one_line(
        "".join(f", {key}={_value_text(settings[key])}" for key in keys if key in settings)
    )


def _value_text(value: object) -> str:
    """Round off the error of a scale's factor: 0.29 * 0.1 is not 0.029."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)
