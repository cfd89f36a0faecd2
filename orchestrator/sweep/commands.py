"""Commands printed for the user."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.plan import is_paper_scale, takes_seeds
from orchestrator.store import StudyKey
from orchestrator.variants import Variant, setting_hash
from search_spaces.catalog import NAMES
from search_spaces.study import Study
from trainables.config import is_generated
from trainables.corpora import NO_TEXT, corpus_argument, corpus_name
from trainables.errors import PROGRAM

Options = Mapping[str, Sequence[str]]
"""Values by option name; a switch has no values."""
RESULTS = ("--storage", "--store")
PATHS = (*RESULTS, "--data-dir")
INPUTS = ("--contexts", "--benchmarks")
SIZES = ("--seeds", "--budget", "--all-trials")


@dataclass(frozen=True, kw_only=True)
class Typed:
    """Study and options as the user typed them."""

    study: str
    options: Options = field(default_factory=dict)

    def select(self, *names: str) -> Options:
        """Return options with these names."""
        return {name: values for name, values in self.options.items() if name in names}


def command_line(*words: str, options: Options) -> str:
    """Return the quoted shell command."""
    option_words = [
        word
        for name, values in options.items()
        for word in ([part for value in values for part in (name, value)] or [name])
    ]
    return f"{PROGRAM} {shlex.join([*words, *option_words])}"


def run_command(
    typed: Typed, study: Study, key: StudyKey, rows: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return the command for a variant's trials (`rows` of the store), with the typed paths."""
    options = {
        **_variant_options(key, typed),
        **_seeds(study, key, rows),
        **typed.select(*SIZES, *INPUTS, *PATHS),
    }
    return command_line(typed.study, options=options)


def paper_command(typed: Typed, study: Study, key: StudyKey) -> str | None:
    """Return the command for the paper's scale, with the typed paths.

    None at the paper's scale, or if the study has no published source.

    The command names the paper's corpora, but keeps a generated language, which is its own
    question. A study without corpora keeps the current corpus, but Penn Treebank replaces the
    built-in corpus.
    """
    if not study.source or is_paper_scale(study, key.scale):
        return None
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


def retry_command(key: StudyKey) -> str:
    """Return the `retry` command of this variant, from the store alone.

    It assumes that the user's file is named after the study, and leaves out seeds and budget.
    """
    study = key.study if key.study in NAMES else f"{key.study}.py"
    return command_line("retry", study, options=_variant_options(key, Typed(study=study)))


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
    if len(counts) != 1 or counts == {study.seeds.get(key.scale, 1)} or not takes_seeds(study):
        return {}
    return {"--seeds": [str(counts.pop())]}
