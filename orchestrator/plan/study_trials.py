"""A study's trials at a scale: validated, resolved and named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from orchestrator.plan.request import PlanRequest
from orchestrator.plan.seeds import obstacle_to_seeds, refuse_seeds, repeat_with_seeds, seed_count
from orchestrator.plan.tuning.tuning_plan import TuningPlan, plan_tuning
from orchestrator.variants import (
    apply_settings,
    combinations,
    has_any,
    swept_keys,
    trial_names,
    with_settings,
)
from search_spaces.scales import SCALES, Scale, apply_scale, smoke_corner
from search_spaces.study import Study, group_of
from trainables.config import KINDS, AnyConfig, CorpusConfig, TrialConfig, read_config
from trainables.corpora import NO_TEXT
from trainables.errors import UserError, first_line, first_problem


def named_trials(
    study: Study,
    scale: Scale,
    corpus: CorpusConfig,
    request: PlanRequest,
) -> tuple[list[tuple[str, AnyConfig]], int]:
    """Return the named trials that the scale runs, and the number of seeds per setting.

    Raises UserError if the study cannot make its trials, or settings or seeds do not fit."""
    written = _written_trials(study, corpus)
    configs = written if request.all_trials else _at_scale(study, scale, written)
    scaled = [_resized(study, scale, config) for config in configs]
    keys = swept_keys(request.settings)
    trials: list[tuple[str, AnyConfig]] = []
    for values in combinations(request.settings):
        resolved = apply_settings(scaled, values)
        # Names come from the configs as written, so that they are equal at every scale. But a value
        # that fits the scale's config may not fit the paper's.
        named = _overridden(configs, values, resolved)
        with _blaming(study, "its label function"):
            variety = named if configs is written else _overridden(written, values, named)
            names = trial_names(study, named, resolved, variety)
        # A trial without any of the settings, such as the truth of a generated language, appears
        # once.
        once = {config.trial_id for _, config in trials}
        trials += [
            (with_settings(name, config, keys), config)
            for name, config in zip(names, resolved, strict=True)
            if not once or config.trial_id not in once or has_any(config, keys)
        ]
    count = seed_count(study, scale, written, [config for _, config in trials], request.seeds)
    repeated = repeat_with_seeds(trials, count)
    if request.all_trials:  # a small scale may make some of them equal
        repeated = list({config.trial_id: (name, config) for name, config in repeated}.values())
    return repeated, count


def written_groups(study: Study, corpus: CorpusConfig) -> set[str]:
    """Return the groups (names without seeds) of all trials at scale paper. Raises UserError if the
    study cannot make them."""
    written = _written_trials(study, corpus)
    with _blaming(study, "its label function"):
        return {group_of(name) for name in trial_names(study, written, written, written)}


def takes_seeds(study: Study) -> bool:
    """Return whether `--seeds` applies to this study."""
    configs = (
        _written_trials(study, CorpusConfig(name=NO_TEXT.name, sha256=NO_TEXT.sha256))
        if not study.tuning
        else ()
    )
    return not obstacle_to_seeds(study, configs)


def is_paper_scale(study: Study, scale: str) -> bool:
    """Return whether `scale` runs exactly the trials of scale paper.

    For a study that reads text, only scale paper does. Raises UserError if the study cannot make
    its trials."""
    if scale == "paper":
        return True
    if study.reads_text or study.tuning is not None or scale not in SCALES:
        return False
    if study.seeds.get(scale, 1) != study.seeds.get("paper", 1):
        return False
    written = _written_trials(study, CorpusConfig(name=NO_TEXT.name, sha256=NO_TEXT.sha256))
    return written == [
        _resized(study, SCALES[scale], config)
        for config in _at_scale(study, SCALES[scale], written)
    ]


def tuning_plan(
    study: Study, scale: Scale, corpus: CorpusConfig, request: PlanRequest
) -> TuningPlan | None:
    """Return the stages of a study that tunes, else None. Raises UserError for an option that does
    not apply to the study."""
    if study.tuning is None:
        for option in ("search", "budget"):
            if getattr(request, option) is not None:
                raise UserError(f"--{option}: {study.name} does not tune. Leave it out.")
        return None
    if request.seeds is not None:
        refuse_seeds(study, ())
    if request.all_trials:
        raise UserError(f"--all-trials: does not apply to {study.name}, which tunes. Leave it out.")
    for key in swept_keys(request.settings):
        raise UserError(
            f"--set: {study.name} tunes, and takes one value per key. Give {key} one value."
        )
    [values] = combinations(request.settings)

    def resolve(config: TrialConfig) -> TrialConfig:
        [resolved] = apply_settings([apply_scale(scale, config)], values)
        assert isinstance(resolved, TrialConfig), "a tuning is over language models"
        return resolved

    with _blaming(study, "its tuning"):
        bases = {side: base(corpus) for side, base in study.tuning.sides.items()}
        # Apply to all sides at once: a key that only some sides have is refused with a precise
        # message.
        apply_settings([apply_scale(scale, base) for base in bases.values()], values)
        return plan_tuning(study.tuning, bases, scale.name, resolve, request)


def _written_trials(study: Study, corpus: CorpusConfig) -> list[AnyConfig]:
    with _blaming(study, "its trials function"):
        configs = list(study.trials(corpus))
    if not configs:
        raise UserError(
            f"study {study.name}: needs at least one trial, and has none for corpus {corpus.name}."
        )
    wrong = next((config for config in configs if not isinstance(config, KINDS)), None)
    if wrong is not None:
        raise UserError(
            f"study {study.name}: yields a {type(wrong).__name__}. Yield a "
            f"{', '.join(kind.__name__ for kind in KINDS[:-1])} or {KINDS[-1].__name__}."
        )
    with _blaming(study, "its trials function"):
        # Workers read configs from JSON. A config that bypassed validation would be another trial
        # there.
        return [read_config(config.model_dump(mode="json", warnings="error")) for config in configs]


def _at_scale(study: Study, scale: Scale, written: Sequence[AnyConfig]) -> Sequence[AnyConfig]:
    pick = {"smoke": study.corner or smoke_corner, "quick": study.quick}.get(scale.name)
    if pick is None:
        return written
    with _blaming(study, f"its {'corner' if scale.name == 'smoke' else 'quick'} function"):
        return list(pick(written))


def _overridden(
    configs: Sequence[AnyConfig], values: Mapping[str, Any], otherwise: Sequence[AnyConfig]
) -> Sequence[AnyConfig]:
    try:
        return apply_settings(configs, values)
    except UserError:
        return otherwise


def _resized(study: Study, scale: Scale, config: AnyConfig) -> AnyConfig:
    return apply_scale(scale, config) if study.scaled else config


@contextmanager
def _blaming(study: Study, part: str) -> Iterator[None]:
    """Study code is the user's: any exception in it is reported as a fault of `part`."""
    try:
        yield
    except UserError:
        raise  # the message is complete
    except Exception as error:
        if isinstance(error, ValidationError):
            problem = f"{error.title}: {first_problem(error)}"
        else:
            problem = f"{type(error).__name__}: {first_line(str(error))}"
        raise UserError(
            f"study {study.name}: cannot make its trials ({problem}). Fix {part}."
        ) from error
