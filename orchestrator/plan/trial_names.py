"""What the trials of a study are called, so that trials of different settings are never taken for seeds of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from search_spaces.study import Study, describe, group_of
from trainables.config import AnyConfig, flat_values
from trainables.errors import UserError


def trial_names(study: Study, configs: Sequence[AnyConfig], variety: Iterable[AnyConfig]) -> list[str]:
    """The configs' labels; where the study has no label of its own, with the settings that the default one leaves out
    and that vary among the trials it stands for: "softmax, training.learning_rate=20 seed=1".

    `variety` are all trials of the study, so that a trial has one name whether or not its scale runs the others.
    Raises UserError for a label that is no text, and for one that several trials cannot share.
    """
    labels = [_label(study, config) for config in configs]
    varying = varying_settings((group_of(_label(study, config)), _settings(config)) for config in variety)
    if study.label is not describe:
        for group, keys in varying.items():
            raise UserError(
                f"trials that share a name but for the seed are taken for repetitions; the label function of "
                f"{study.name} calls trials {group!r} that differ in {', '.join(keys)}: let it name what differs"
            )
    names = [_completed(label, config, varying) for label, config in zip(labels, configs, strict=True)]
    seeds = dict.fromkeys((name, config.seed) for name, config in zip(names, configs, strict=True))
    for name, count in Counter(name for name, _ in seeds).items():
        if count > 1:
            raise UserError(
                f"trials of different seeds have different names; the label function of {study.name} calls {count} of "
                f"them {name!r}: let the name end in ' seed=' and the seed"
            )
    return names


def _label(study: Study, config: AnyConfig) -> str:
    label: object = study.label(config)
    if not isinstance(label, str):
        raise UserError(f"a trial's name is a text; the label function of {study.name} gives {label!r}: mend it")
    return label


def varying_settings(trials: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, list[str]]:
    """By group, the dotted keys besides the seed in which its trials differ; groups of one setting are left out.

    `trials` are the group and the settings, by dotted key, of each.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for group, settings in trials:
        groups.setdefault(group, []).append(settings)
    varying = {}
    for group, members in groups.items():
        keys = dict.fromkeys(key for settings in members for key in settings if key != "seed")
        if differing := [key for key in keys if any(settings.get(key) != members[0].get(key) for settings in members)]:
            varying[group] = differing
    return varying


def completed_group(group: str, settings: Mapping[str, Any], varying: Mapping[str, Sequence[str]]) -> str:
    """The group with what varies among its trials: "softmax, training.learning_rate=20"."""
    return group + "".join(f", {key}={_shown(settings[key])}" for key in varying.get(group, ()) if key in settings)


def _settings(config: AnyConfig) -> dict[str, Any]:
    return {**flat_values(config.model_dump(mode="json")), "kind": config.kind}


def _completed(label: str, config: AnyConfig, varying: Mapping[str, Sequence[str]]) -> str:
    group = group_of(label)
    return completed_group(group, _settings(config), varying) + label.removeprefix(group)


def _shown(value: object) -> str:
    """In as few digits as tell it from any other number."""
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
