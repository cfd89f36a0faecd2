"""Shell commands that are printed for the user."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.plan import is_paper_scale, takes_seeds
from orchestrator.store import StudyKey
from orchestrator.variants import Variant, setting_hash
from search_spaces.catalog import is_command, is_file
from search_spaces.command_study import command_words
from search_spaces.study import Study
from trainables.config import is_generated
from trainables.corpora import NO_TEXT, corpus_argument, corpus_name
from trainables.errors import PROGRAM

Options = Mapping[str, Sequence[str]]
"""Values of command-line options, by name. An option without a value has an empty list."""
RESULTS = ("--storage", "--store")
PATHS = (*RESULTS, "--data-dir")
INPUTS = ("--contexts", "--benchmarks")
SIZES = ("--seeds", "--budget", "--all-trials")


@dataclass(frozen=True, kw_only=True)
class Typed:
    """Study and options as the user typed them."""

    study: str
    options: Options = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Path of the user's file, or definition of the command; empty for a built-in study."""
        if is_file(self.study):
            return str(Path(self.study).resolve())
        return self.study if is_command(self.study) else ""

    def select(self, *names: str) -> Options:
        """Return the options with these names."""
        return {name: values for name, values in self.options.items() if name in names}


def command_line(*words: str, options: Options) -> str:
    """Return a shell command of this program, with quoted arguments."""
    return f"{PROGRAM} {shlex.join([*words, *option_words(options)])}"


def option_words(options: Options) -> list[str]:
    """Return the words of these options on a command line."""
    return [
        word
        for name, values in options.items()
        for word in ([part for value in values for part in (name, value)] or [name])
    ]


def run_command(
    typed: Typed, study: Study, key: StudyKey, rows: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return the command that runs a study variant, with the paths that the user typed.

    `rows` are the variant's trials in the store, from which the number of seeds is read.
    """
    options = typed.select(*SIZES, *INPUTS, *PATHS)
    if not is_command(typed.study):
        options = {**_variant_options(key, typed), **_seeds(study, key, rows), **options}
    return command_line(*command_words(typed.study), options=options)


def paper_command(typed: Typed, study: Study, key: StudyKey) -> str | None:
    """Return the command that runs the study on the paper's scale and corpora.

    Returns None if the scale is already the paper's, or the study has no published source.
    """
    if not study.source or is_paper_scale(study, key.scale):
        return None
    # A study without corpora keeps the current corpus, but not the small built-in one. A generated
    # language is always kept, because it is a question of its own.
    default_corpus = "ptb" if key.corpus == "pydocs" else key.corpus
    corpora = [key.corpus] if is_generated(key.corpus) else study.corpora or [default_corpus]
    model = Variant.read(key.overrides).model
    options = {
        "--scale": ["paper"],
        "--corpus": _corpora(corpora if study.reads_text else (), typed),
        "--model": [] if model is None else [model],
    }
    settings = {name: values for name, values in options.items() if values}
    return command_line(typed.study, options={**settings, **typed.select(*PATHS)})


def retry_command(key: StudyKey, study: str) -> str:
    """Return the command that retries a variant of `study`, with the options that the store knows.

    Omits the seeds and the budget of a study that is not a command.
    """
    options = {} if is_command(study) else _variant_options(key, Typed(study=study))
    return command_line(*command_words(study, again=True), options=options)


def _variant_options(key: StudyKey, typed: Typed) -> dict[str, Sequence[str]]:
    corpora = _corpora([key.corpus], typed)
    corpus = {"--corpus": corpora} if corpora else {}
    return {"--scale": [key.scale], **corpus, **Variant.read(key.overrides).options}


def _corpora(corpora: Sequence[str], typed: Typed) -> list[str]:
    folders = {corpus_name(value): value for value in typed.options.get("--corpus", ())}
    return [
        folders.get(corpus) or corpus_argument(corpus)
        for corpus in corpora
        if corpus != NO_TEXT.name
    ]


def _seeds(study: Study, key: StudyKey, rows: Sequence[Mapping[str, Any]]) -> Options:
    counts = set(Counter(setting_hash(row["config"]) for row in rows).values())
    if len(counts) != 1 or counts == {study.seeds_at(key.scale)} or not takes_seeds(study):
        return {}
    return {"--seeds": [str(counts.pop())]}
