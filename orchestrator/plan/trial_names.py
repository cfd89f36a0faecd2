"""What the trials of a study are called, so that trials of different settings are never taken for seeds of one."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from orchestrator.words import one_line
from search_spaces.study import Study, describe, group_of
from trainables.config import AnyConfig, flat_values, identity
from trainables.errors import UserError

LONGEST_GROUP, LONGEST_COMPLETION = 100, 80
"""Characters. What is longer is cut, or not said in words."""
_Trial = tuple[str, str]
"""Group and setting."""
HASH_DIGITS = 8
"""Of a setting's hash behind a label; more where two settings share these."""


def trial_names(
    study: Study, written: Sequence[AnyConfig], resolved: Sequence[AnyConfig], variety: Iterable[AnyConfig]
) -> list[str]:
    """The configs' labels, whatever the label function gives: on one line, with what varies among the trials that it
    calls alike ("softmax, training.learning_rate=20 seed=1"), or with the setting's hash ("mine #1a2b3c4d seed=1").

    `written` are the configs as the study has them, `resolved` as they are trained, and `variety` all trials of the
    study, so that a trial has one name whether or not its scale runs the others. Raises UserError for a label that is
    no text.
    """
    variety_groups = [(*_group(study, config), config) for config in variety]
    varying = varying_settings((group, _settings(config)) for group, _, config in variety_groups)
    trials = Counter(_completed(group, config, varying) for group, _, config in variety_groups)
    labels = [_group(study, config) for config in written]
    completed = [_completed(group, config, varying) for (group, _), config in zip(labels, written, strict=True)]
    groups = told_apart([group for group, _ in completed], [_hash_of(config) for config in resolved])
    return [
        f"{group} seed={config.seed}" if says_seed or trials[setting] > 1 else group
        for group, (_, says_seed), setting, config in zip(groups, labels, completed, written, strict=True)
    ]


def setting_hash(content: Mapping[str, Any]) -> str:
    """SHA-256 of a config's JSON data without its seed, as 64 hexadecimal digits: the same for trials that differ in
    their seed alone."""
    setting = {key: value for key, value in identity(content).items() if key != "seed"}
    return hashlib.sha256(json.dumps(setting, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def varying_settings(trials: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, list[str]]:
    """By group, the dotted keys besides the seed in which its trials differ; groups of one setting are left out, and
    those that it would take too many words to tell apart.

    `trials` are the group and the settings, by dotted key, of each.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for group, settings in trials:
        groups.setdefault(group, []).append(settings)
    varying = {}
    for group, members in groups.items():
        keys = dict.fromkeys(key for settings in members for key in settings if key != "seed")
        differing = [key for key in keys if any(settings.get(key) != members[0].get(key) for settings in members)]
        if differing and all(len(_completion(settings, differing)) <= LONGEST_COMPLETION for settings in members):
            varying[group] = differing
    return varying


def completed_group(group: str, settings: Mapping[str, Any], varying: Mapping[str, Sequence[str]]) -> str:
    """The group with what varies among its trials: "softmax, training.learning_rate=20"."""
    return group + _completion(settings, varying.get(group, ()))


def with_settings(name: str, config: AnyConfig, keys: Sequence[str]) -> str:
    """The trial's name with these of its settings behind its group: "softmax, training.learning_rate=20 seed=1"."""
    group = group_of(name)
    return group + _completion(_settings(config), keys) + name.removeprefix(group)


def has_any(config: AnyConfig, keys: Sequence[str]) -> bool:
    """Whether the trial has one of these settings, by dotted key."""
    return not _settings(config).keys().isdisjoint(keys)


def without_settings(group: str, keys: Sequence[str]) -> str:
    """The group as it was before `with_settings`, or the text that it is where it has none of them."""
    for key in reversed(keys):
        group = group.rpartition(f", {key}=")[0] or group
    return group


def differing_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of a trial's settings those that its name gives another value: it has them as the study writes them, for paper
    scale."""
    differing = {}
    for key, value in settings.items():
        before, _, given = name.rpartition(f", {key}=")
        rest = given.removeprefix(_shown(value))
        if before and (rest == given or rest[:1] not in ("", ",", " ")):
            differing[key] = value
    return differing


def told_apart(groups: Sequence[str], settings: Sequence[str]) -> list[str]:
    """The groups; where two of different settings are the same, or look it, with the settings' hashes behind.

    `settings` are the hashes of the same trials. Labels look the same that differ in case, white space, accents or
    characters that are not ASCII in place of others that are.
    """
    trials = list(zip(groups, settings, strict=True))
    names = {trial: trial[0] for trial in trials}
    count = len(set(settings))
    digits = next(n for n in range(HASH_DIGITS, 65) if len({setting[:n] for setting in settings}) == count)
    marks = {trial: f" #{trial[1][:digits]}" for trial in names}
    while unmarked := [trial for trial in _mistakable(names) if not names[trial].endswith(marks[trial])]:
        for trial in unmarked:
            names[trial] += marks[trial]
    return [names[trial] for trial in trials]


def _mistakable(names: Mapping[_Trial, str]) -> set[_Trial]:
    """Those whose name could be taken for that of another setting."""
    looks = {trial: _look(name) for trial, name in names.items()}
    settings: defaultdict[str, set[str]] = defaultdict(set)
    for (_, setting), look in looks.items():
        settings[look].add(setting)
    lengths: defaultdict[int, dict[str, frozenset[str]]] = defaultdict(dict)
    for look in settings:
        lengths[len(look)][look] = frozenset(settings[look])
    mistakable = {look for look in settings if len(settings[look]) > 1}.union(*map(_look_alikes, lengths.values()))
    return {trial for trial, look in looks.items() if look in mistakable}


def _look_alikes(settings: Mapping[str, frozenset[str]]) -> set[str]:
    """Of looks of one length, given with their settings, those that another one of other settings could be taken for:
    they have the same letters but where one has an ASCII letter and the other one does not."""
    # As there may be thousands, each is compared with all at once: bit i stands for foreign[i].
    foreign = [look for look in settings if not look.isascii()]
    alike = dict.fromkeys(settings, (1 << len(foreign)) - 1)
    for position in range(max(map(len, foreign), default=0)):
        having: defaultdict[str, int] = defaultdict(int)
        for i, look in enumerate(foreign):
            having[look[position]] |= 1 << i
        opposite = {kind: sum(bits for letter, bits in having.items() if letter.isascii() != kind) for kind in (0, 1)}
        for look in alike:
            letter = look[position]
            alike[look] &= having.get(letter, 0) | opposite[letter.isascii()]
    same: defaultdict[frozenset[str], int] = defaultdict(int)
    for i, look in enumerate(foreign):
        same[settings[look]] |= 1 << i
    others = {look: bits & ~same[settings[look]] for look, bits in alike.items()}
    met = reduce(or_, others.values(), 0)
    return {look for look, bits in others.items() if bits} | {look for i, look in enumerate(foreign) if met >> i & 1}


def _look(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name).casefold()
    return "".join(letter for letter in letters if not letter.isspace() and not unicodedata.combining(letter))


def _group(study: Study, config: AnyConfig) -> tuple[str, bool]:
    """What the label says apart from the seed, and whether it ends in one."""
    label: object = study.label(config)
    if not isinstance(label, str):
        raise UserError(f"a trial's name is a text; the label function of {study.name} gives {label!r}: fix it")
    # An entry of a legend that begins with an underscore is not shown.
    text = f" {one_line(label, most=10 * LONGEST_GROUP).lstrip('_ ')}"
    group = group_of(text)
    name = one_line(group, most=LONGEST_GROUP) or one_line(group_of(describe(config)), most=LONGEST_GROUP)
    return name, group != text


def _completed(group: str, config: AnyConfig, varying: Mapping[str, Sequence[str]]) -> tuple[str, str]:
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
