"""What a run says before it starts and after it ends, and the commands it tells the reader to
type."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.cluster import RunOptions
from orchestrator.forecast import outlook
from orchestrator.plan import Plan, is_paper_scale, scale_summary
from orchestrator.store import COMPLETE, StudyKey, TrialState
from orchestrator.variants import as_typed, read_overrides, setting_hash, typed_model, typed_variant
from orchestrator.words import counted, duration, on_corpus
from search_spaces.catalog import NAMES
from search_spaces.model_kinds import OPTION
from search_spaces.study import Study
from trainables.config import CorpusConfig, flat_values, is_generated
from trainables.corpora import NO_TEXT, corpus_argument, corpus_name
from trainables.errors import PROGRAM

RESULTS = ("--storage", "--store")
PLACES = (*RESULTS, "--data-dir")
SIZES = ("--seeds", "--budget")
OTHER_MODELS = "the study with other models than the paper's, as large as those of its own scale"
START_S = 10.0
"""Ray's start and its workers' imports."""


def concurrent_trials(options: RunOptions) -> int:
    """How many trials run at a time, as far as that is known before Ray has started."""
    if options.gpus_per_trial:
        return options.max_concurrent or 1
    fitting = max(1, len(os.sched_getaffinity(0)) // options.runtime.threads)
    return min(options.max_concurrent or fitting, fitting)


def opening(
    plan: Plan,
    missing: int,
    states: Mapping[str, TrialState],
    lacking: Mapping[str, Sequence[str]],
    seconds_each: tuple[float, str],
    options: RunOptions,
) -> str:
    """What will run and for how long. `missing` counts trials that are not chosen yet, too;
    `seconds_each` is the time of a trial and where that is known from; `lacking` has the
    measurements that done trials have not got, by trial id."""
    done, stopped = (sum(state == wanted for state in states.values()) for wanted in COMPLETE)
    others = plan.total - done - stopped - missing
    troubled = f", {stopped} stopped early" if stopped else ""
    troubled += f", {others} not run (without a result so far)" if others else ""
    names = ", ".join(dict.fromkeys(name for each in lacking.values() for name in each))
    later = f", {len(lacking)} of them to be measured again for: {names}" if lacking else ""
    with_set = (
        f", with {' '.join(variant)}" if (variant := typed_variant(plan.key.overrides)) else ""
    )
    summary = scale_summary(plan.study, plan.scale.name, all_trials=plan.all_trials)
    if plan.scale.name == "paper" and typed_model(plan.key.overrides):
        summary = OTHER_MODELS
    lines = [
        f"Study {plan.study.name}: {plan.study.title or plan.study.question}".rstrip(": "),
        f"Scale {plan.scale.name} ({summary}){on_corpus(plan.corpus.name)}{with_set}",
        *(stage.sentence for stage in outlook(plan)),
        f"{counted(plan.total, 'trial')}{_seeds(plan)}: {missing} to run, {done} already "
        f"done{later}{troubled}.",
    ]
    if missing:
        unit, concurrent = "GPU" if options.gpus_per_trial else "core", concurrent_trials(options)
        units = f"{concurrent} {unit}{'s' * (concurrent > 1)}"
        whole = duration(START_S + missing * seconds_each[0] / concurrent)
        lines.append(
            f"Estimated time: about {whole} on {units} ({duration(seconds_each[0])} a trial and "
            f"{unit}, "
            f"{seconds_each[1]}; {START_S:.0f} s to start)."
        )
    command = paper_command(plan.argument, plan.study, plan.key, options.typed)
    if command is not None:
        lines.append(f"This is not the paper's scale; for that, type: {command}")
    return "\n".join(lines)


def _seeds(plan: Plan) -> str:
    return f" ({plan.seeds} seeds of each setting)" if plan.seeds > 1 else ""


def paper_command(argument: str, study: Study, key: StudyKey, typed: Sequence[str]) -> str | None:
    """What to type for the paper's scale, on the same store and storage as in `typed`; None where
    this is it.

    The corpora are the paper's, but for a generated language, which is a question of its own; of a
    study without any, the one at hand, or Penn Treebank in place of the built-in."""
    if is_paper_scale(study, key.scale):
        return None
    alone = "ptb" if key.corpus == "pydocs" else key.corpus
    corpora = (key.corpus,) if is_generated(key.corpus) else study.corpora or (alone,)
    texts = corpora if study.reads_text else ()
    return command_line(*_words(argument, "paper", texts, typed, *typed_model(key.overrides)))


def run_command(
    argument: str,
    study: Study,
    key: StudyKey,
    typed: Sequence[str],
    rows: Sequence[Mapping[str, Any]] = (),
) -> str:
    """What to type for the trials of this variant, `rows` as the store has them, on the same store
    and storage as in `typed`; a file that the user brought stands there by its name."""
    words = [word for words, _ in _options(typed, *SIZES) for word in words]
    words += [word for word in typed if word == "--all-trials"]
    if not any(_options(typed, "--seeds")) and (seeds := _further_seeds(study, key, rows)):
        words += ["--seeds", str(seeds)]
    return command_line(
        *_words(argument, key.scale, (key.corpus,), typed, *words, *_of_variant(key, rows))
    )


def retry_command(key: StudyKey, rows: Sequence[Mapping[str, Any]] = ()) -> str:
    """What to type to run again what this variant has without a result, as far as a store knows it,
    whose rows these are: a study of one's own and a file that the user brought stand there by their
    names, and a number of seeds or a budget is left out."""
    argument = key.study if key.study in NAMES else f"{key.study}.py"
    return command_line(
        "retry", *_words(argument, key.scale, (key.corpus,), (), *_of_variant(key, rows))
    )


def _of_variant(key: StudyKey, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The words that make it this variant of its study."""
    for name, value in read_overrides(key.overrides).items():
        if name == OPTION:
            yield from (name, str(value))
        elif name.startswith("--"):
            yield from (name, str(value).rpartition(" ")[0])
        elif name == "search":
            yield from ("--search", str(value))
        else:
            yield from ("--set", f"{name}={as_typed(_as_set(name, value, rows))}")


def _as_set(name: str, value: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    """Several values as a tuple, where the trials have one of them each; a list that they have as
    it is stays one."""
    if not isinstance(value, list):
        return value
    is_one = any(flat_values(row["config"]).get(name) == value for row in rows)
    return value if is_one else tuple(value)


def _further_seeds(study: Study, key: StudyKey, rows: Sequence[Mapping[str, Any]]) -> int | None:
    """How many seeds each setting has, where that is another number than the study says by
    itself."""
    if study.tuning is not None or not study.trains:
        return None
    seeds = Counter(setting_hash(row["config"]) for row in rows)
    counts = set(seeds.values())
    by_itself = study.seeds.get(key.scale, 1)
    if len(counts) != 1 or counts == {by_itself}:
        return None
    corpus = CorpusConfig(name=key.corpus, sha256="0" * 64)
    repeated = Counter(
        setting_hash(config.model_dump(mode="json")) for config in study.trials(corpus)
    )
    return None if max(repeated.values(), default=1) > 1 else counts.pop()


def _words(
    argument: str, scale: str, corpora: Sequence[str], typed: Sequence[str], *words: str
) -> Sequence[str]:
    folders = {corpus_name(value): value for _, value in _options(typed, "--corpus")}
    texts = [
        folders.get(corpus) or corpus_argument(corpus)
        for corpus in corpora
        if corpus != NO_TEXT.name
    ]
    kept = [word for words, _ in _options(typed, *PLACES) for word in words]
    return (
        argument,
        "--scale",
        scale,
        *(word for text in texts for word in ("--corpus", text)),
        *words,
        *kept,
    )


def view_command(typed: Sequence[str]) -> str:
    """What to type to look at the trials, on the same store and storage as in `typed`."""
    return command_line("view", *(word for words, _ in _options(typed, *RESULTS) for word in words))


def _options(typed: Sequence[str], *names: str) -> Iterator[tuple[Sequence[str], str]]:
    """Of what was typed, the options of these names: their words, one or two, and their values."""
    for place, word in enumerate(typed):
        name, equals, value = word.partition("=")
        if name in names:
            words = [word] if equals else typed[place : place + 2]
            yield words, value or words[-1]


def command_line(*words: str) -> str:
    """Return the shell command that starts the program with these words."""
    return f"{PROGRAM} {shlex.join(words)}"
