"""Study of a command, defined by the options of `sweep.py command` instead of a Python file."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from search_spaces.analyses import Comparison, GroupTable
from search_spaces.catalog import ALL, NAMES, is_command, is_file
from search_spaces.spaces import Grid, Random, Search, Trials, When, Zip
from search_spaces.study import Study
from search_spaces.tuning import Method
from trainables.config import Command, Mode, placeholders, register_files
from trainables.errors import UserError, first_problem

STUDY_OPTIONS = {
    "files": (
        "PATH",
        "File or folder that the program needs, relative to this folder. Trials get copies. May be "
        "repeated.",
    ),
    "grid": (
        "NAME=VALUE[,VALUE...]",
        "Values of {NAME} in the command. Several options are combined in every way.",
    ),
    "zip": (
        "NAME=VALUE[,VALUE...]",
        "Like --grid, but the first values of all --zip options are combined, then the second, and "
        "so on.",
    ),
    "when": (
        "NAME=VALUE:NAME=VALUE[,VALUE...]",
        "Values of the second {NAME} if the first has this value; otherwise the first of them. May "
        "be repeated.",
    ),
    "random": ("N", "Run N random combinations instead of all."),
    "metric": ("NAME", "Number to improve, as the program prints it. Required."),
    "mode": ("MIN|MAX", "Whether low or high values are better. [default: min]"),
    "baseline": (
        "NAME=VALUE[,NAME=VALUE...]",
        "Setting to compare the others with. [default: the first]",
    ),
    "name": ("NAME", "The study's name. [default: that of the program]"),
}
"""Metavariable and help of each option of `command` only."""
DEFINING = tuple(f"--{name}" for name in (*STUDY_OPTIONS, "seeds", "search", "budget"))
"""Options that define the study. All others may differ between two runs of it."""

Value = int | float | str
Fields = dict[str, Any]
"""Values by name."""


@dataclass(frozen=True)
class _Definition:
    command: str
    options: Mapping[str, Sequence[str]]
    sha256: str | None = None
    """SHA-256 of the files; None without files."""


_FORMAT = TypeAdapter(_Definition)


def define(command: str, options: Mapping[str, Sequence[str]]) -> str:
    """Return the definition (JSON) of a command's study, for `load_study`.

    `options` have the values of the `DEFINING` options; others are ignored. Reads the files for
    workers. Raises UserError if a file is missing.
    """
    options = {name: options[name] for name in DEFINING if name in options}
    files = options.get("--files")
    for word in () if files else command.split():
        if not Path(word).is_absolute() and Path(word).is_file():
            raise UserError(f"--files: trials would not find {word}. Add --files {word}.")
    sha256 = register_files(Path(), files, "--files") if files else None
    return _FORMAT.dump_json(_Definition(command, options, sha256)).decode()


def redefine(definition: str) -> str:
    """Return a stored definition with its files as they are now. Raises the errors of `define`."""
    content = _read(definition)
    return define(content.command, content.options)


def command_words(study: str, *, again: bool = False) -> list[str]:
    """Return the words after `sweep.py` that run a study or, if `again`, its failed trials."""
    if not is_command(study):
        return [*["retry"] * again, study]
    definition = _read(study)
    options = [
        word
        for name, values in definition.options.items()
        for value in values
        for word in (name, value)
    ]
    return ["command", definition.command, *options, *["--retry"] * again]


def _read(text: str) -> _Definition:
    try:
        return _FORMAT.validate_json(text)
    except ValidationError as error:
        raise UserError(f"a command's definition is damaged: {first_problem(error)}") from error


def command_study(definition: str) -> Study:
    """Return the study of `define`, without its files. Raises UserError for a wrong option."""
    content = _read(definition)
    command, options, sha256 = content.command, content.options, content.sha256

    def last(option: str, default: str = "") -> str:
        return options.get(option, (default,))[-1]

    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"command: {error} in {command!r}. Correct it.") from error
    if not words:
        raise UserError('command: is empty. Name a program, such as "python train.py --lr {lr}".')
    files = tuple(options.get("--files", ()))
    grid, rows = (_fields(option, options.get(option, ())) for option in ("--grid", "--zip"))
    whens = [_when(text) for text in options.get("--when", ())]
    # The base has each field's first value.
    groups = [(option, fields) for option, fields in (("--grid", grid), ("--zip", rows))]
    groups += [("--when", fields) for _, _, fields in whens]
    values: dict[str, Value] = {}
    for _, fields in groups:
        values |= {name: field[0] for name, field in fields.items() if name not in values}
    _check_names(words, groups)
    metric, mode, baseline = last("--metric"), last("--mode", "min"), last("--baseline")
    if not metric:
        raise UserError("--metric: missing. Name a number that the program prints.")
    best = {"min": "lowest", "max": "highest"}.get(mode, mode)
    subject = f"{' and '.join(values)} give{'s' if len(values) == 1 else ''}"
    base = Command(words, files=files, sha256=sha256, **values)
    trials = _trials(
        base, grid, rows, [When(key, value, **fields) for key, value, fields in whens], options
    )
    if isinstance(trials, Search) and baseline:
        raise UserError("--baseline: does not apply to --search. Leave it out.")
    analyses: dict[str, Any] = {}
    if not isinstance(trials, Search):
        comparison = Comparison(baseline=_group(baseline, list(values)))
        analyses["analyses"] = (comparison, GroupTable())
    return Study(
        name=_name(last("--name"), words, files),
        trials=trials,
        title=command,
        question=f"Which {subject if values else 'seed gives'} the {best} {metric}?",
        metric=metric,
        mode=cast("Mode", mode),
        seeds=_count("--seeds", last("--seeds", "1")),
        **analyses,
    )


def _trials(
    base: Command,
    grid: Fields,
    rows: Fields,
    whens: Sequence[When],
    options: Mapping[str, Sequence[str]],
) -> Trials:
    """Return the space that the options choose; --grid and --when are combined in every way."""
    chosen = [name for name in ("--random", "--search") if name in options]
    if "--budget" in options and "--search" not in options:
        raise UserError("--budget: needs --search. Add --search tpe, or leave it out.")
    if len(chosen) > 1 or (chosen and rows):
        raise UserError(f"{chosen[0]}: excludes {[*chosen, '--zip'][1]}. Leave one out.")
    if chosen and not grid:
        raise UserError(f"{chosen[0]}: needs the values to choose from. Add --grid NAME=VALUE,...")
    if "--random" in options:
        return Random(_count("--random", options["--random"][-1]), base, *whens, **grid)
    if "--search" in options:
        budget = _count("--budget", options.get("--budget", ("30",))[-1])
        method = cast("Method", options["--search"][-1])
        return Search(base, *whens, budget=budget, method=method, **grid)
    if not rows:
        return Grid(base, *whens, **grid)
    bases = Zip(base, **rows)
    return Trials(lambda: (one for row in bases() for one in Grid(row, *whens, **grid)()))


def _check_names(words: Sequence[str], groups: Sequence[tuple[str, Fields]]) -> None:
    names = {name for word in words for name in placeholders(word)}
    given = {name for _, fields in groups for name in fields}
    for name in sorted(names - given - {"seed"}):
        raise UserError(
            f"command: {{{name}}} has no values. Add --grid {name}=VALUE,VALUE, or write {{{{ and "
            "}} for braces."
        )
    seen: set[str] = set()
    for option, fields in groups:
        for name in fields:
            if name in Command.model_fields:
                fix = "Use --seeds N." if name == "seed" else "Rename it."
                raise UserError(f"{option}: the name {name} is taken. {fix}")
            if name not in names:
                raise UserError(
                    f"{option}: the command does not use {name}. Write {{{name}}} into it, or "
                    "leave the option out."
                )
            if option != "--when" and name in seen:
                raise UserError(f"{option}: {name} occurs twice. Leave one out.")
            seen.add(name)


def _when(text: str) -> tuple[str, Value, Fields]:
    """Return key, value and fields of "optimizer=sgd:momentum=0,0.9"."""
    condition, colon, field = text.partition(":")
    key, equals, value = condition.partition("=")
    if not (colon and key and equals):
        raise UserError(f"--when: {text!r} is not NAME=VALUE:NAME=VALUE,VALUE. Correct it.")
    return key, _value(value), _fields("--when", [field])


def _name(name: str, words: Sequence[str], files: Sequence[str]) -> str:
    """Return the study's name, by default that of the program: "train" for "python train.py"."""
    name = name or Path(next((word for word in words if word in files), words[0])).stem
    if name in (*NAMES, ALL) or is_file(name):
        raise UserError(
            f"--name: {name!r} is the name of a built-in study or of a file. Choose another name "
            "with --name NAME."
        )
    return name


def _fields(option: str, texts: Sequence[str]) -> Fields:
    fields: Fields = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not (name.isidentifier() and equals and values):
            raise UserError(f"{option}: {text!r} is not NAME=VALUE,VALUE. Correct it.")
        if name in fields:
            raise UserError(f"{option}: {name} occurs twice. Write all its values into one option.")
        fields[name] = tuple(map(_value, values.split(",")))
    return fields


def _value(text: str) -> Value:
    """Return a number for text that is one, and other text unchanged."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if type(value) in (int, float) and abs(value) < math.inf else text


def _count(option: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"{option}: must be 1 or more; got {text}.")
    return int(text)


def _group(text: str, names: Sequence[str]) -> str:
    """Return the trials' name for "lr=0.1,width=8" without the seed: "lr=0.1, width=8"."""
    pairs = dict(pair.partition("=")[::2] for pair in text.split(",")) if text else {}
    order = [name for name in names if name in pairs] or list(pairs)
    values = {name: _value(pairs[name]) for name in order}
    return ", ".join(
        f"{name}={value:.12g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in values.items()
    )
