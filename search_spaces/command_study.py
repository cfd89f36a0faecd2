"""Study of a command, defined by the options of `sweep.py command` instead of a Python file."""

from __future__ import annotations

import itertools
import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from search_spaces.analyses import Comparison, GroupTable
from search_spaces.catalog import ALL, NAMES, is_command, is_file
from search_spaces.study import Study
from trainables.config import Command, placeholders, register_files
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
Fields = dict[str, tuple[Value, ...]]


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
    sha256 = register_files(Path(), files) if files else None
    return _FORMAT.dump_json(_Definition(command, options, sha256)).decode()


def command_words(study: str, *, again: bool = False) -> list[str]:
    """Return the words after `sweep.py` that run a study or, if `again`, its failed trials."""
    if not is_command(study):
        return [*["retry"] * again, study]
    definition = _read(study)
    options = [
        word for name, values in definition.options.items() for value in values
        for word in (name, value)
    ]
    return ["command", definition.command, *options, *["--retry"] * again]


def _read(text: str) -> _Definition:
    try:
        return _FORMAT.validate_json(text)
    except ValidationError as error:
        raise UserError(f"the definition of a command is damaged: {first_problem(error)}") from error


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
    grid = _fields("--grid", options.get("--grid", ()))
    names = dict.fromkeys(name for word in words for name in placeholders(word))
    for name in names:
        if name not in (*grid, "seed"):
            raise UserError(
                f"command: {{{name}}} has no values. Add --grid {name}=VALUE,VALUE, or write "
                "{{ and }} for braces."
            )
    for name in grid:
        if name in Command.model_fields:
            fix = "Use --seeds N." if name == "seed" else "Rename it."
            raise UserError(f"--grid: the name {name} is taken. {fix}")
        if name not in names:
            raise UserError(
                f"--grid: the command does not use {name}. Write {{{name}}} into it, or leave the "
                "option out."
            )
    metric = last("--metric")
    if not metric:
        raise UserError("--metric: missing. Name a number that the program prints.")
    baseline = last("--baseline")
    best = "highest" if (mode := last("--mode", "min")) == "max" else "lowest"
    subject = f"{' and '.join(grid)} give{'s' if len(grid) == 1 else ''}" if grid else "seed gives"
    return Study(
        name=_name(last("--name"), words, files),
        trials=lambda: [
            Command(words, files=files, sha256=sha256, **values) for values in _cells(grid)
        ],
        title=command,
        question=f"Which {subject} the {best} {metric}?",
        analyses=(Comparison(baseline=_group(baseline, grid)), GroupTable()),
        metric=metric,
        mode="max" if mode == "max" else "min",
        seeds=_count("--seeds", last("--seeds", "1")),
    )


def _cells(grid: Fields) -> Iterator[dict[str, Value]]:
    for cell in itertools.product(*grid.values()):
        yield dict(zip(grid, cell, strict=True))


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


def _group(text: str, grid: Fields) -> str:
    """Return the trials' name for "lr=0.1,width=8" without the seed: "lr=0.1, width=8"."""
    pairs = dict(pair.partition("=")[::2] for pair in text.split(",")) if text else {}
    values = {name.strip(): _value(value) for name, value in pairs.items()}
    order = [name for name in grid if name in values] + [name for name in values if name not in grid]
    return ", ".join(
        f"{name}={value:.12g}" if isinstance(value := values[name], float) else f"{name}={value}"
        for name in order
    )
