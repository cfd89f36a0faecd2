"""A study's trials at a scale: validated, resolved and named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pydantic import ValidationError

from orchestrator.plan.request import PlanRequest
from orchestrator.plan.seeds import obstacle_to_seeds, refuse_seeds, repeat_with_seeds, seed_count
from orchestrator.plan.tuning.tuning_plan import TuningPlan, plan_tuning
from orchestrator.store import StudyKey
from orchestrator.variants import (
    Variant,
    apply_settings,
    combinations,
    distinct_settings,
    has_any,
    swept_keys,
    trial_names,
    with_settings,
)
from search_spaces.scales import Scale, apply_scale, smoke_corner
from search_spaces.study import Study, group_of
from trainables.config import KINDS, AnyConfig, CorpusConfig, read_config, replaced
from trainables.corpora import NO_TEXT
from trainables.errors import UserError, first_line, first_problem


def named_trials(
    study: Study,
    scale: Scale,
    corpus: CorpusConfig,
    request: PlanRequest,
) -> tuple[list[tuple[str, AnyConfig]], int, int]:
    """Return the named trials, the number of seeds per setting, and the number of settings.

    Settings that the scale omits count, too. Raises UserError for a faulty study, setting or number
    of seeds.
    """
    all_configs = _all_configs(study, corpus)
    configs = all_configs if request.all_trials else _at_scale(study, scale, all_configs)
    variety = [_resize(study, scale, config) for config in all_configs]
    scaled_configs = [_resize(study, scale, config) for config in configs]
    keys = swept_keys(request.settings)
    trials: list[tuple[str, AnyConfig]] = []
    settings = set[str]()
    for values in combinations(request.settings):
        resolved_configs = apply_settings(scaled_configs, values)
        try:
            variety_at_values = apply_settings(variety, values)
        except UserError:  # some trials that the scale leaves out may not have a key
            variety_at_values = resolved_configs
        with _study_faults(study, "its label function"):
            names = trial_names(study, resolved_configs, variety_at_values)
        settings |= distinct_settings(variety_at_values)
        # A trial with none of the `--set` keys, such as the true matrix of a generated language,
        # appears once.
        single_ids = {config.trial_id for _, config in trials}
        trials += [
            (with_settings(name, config, keys), config)
            for name, config in zip(names, resolved_configs, strict=True)
            if not single_ids or config.trial_id not in single_ids or has_any(config, keys)
        ]
    count = seed_count(study, scale, all_configs, request.seeds)
    repeated_trials = repeat_with_seeds(trials, count)
    if request.all_trials:  # at a small scale, some trials may be equal
        repeated_trials = list(
            {config.trial_id: (name, config) for name, config in repeated_trials}.values()
        )
    return repeated_trials, count, len(settings)


def groups_by_written(study: Study, scale: Scale, corpus: CorpusConfig) -> dict[str, str]:
    """Return a map from groups' names at scale paper to their names at this scale.

    Raises UserError for a faulty study.
    """
    written = _all_configs(study, corpus)
    trained = [_resize(study, scale, config) for config in written]
    with _study_faults(study, "its label function"):
        groups = [map(group_of, trial_names(study, each, each)) for each in (written, trained)]
    return dict(zip(*groups, strict=True))


def setting_total(key: StudyKey, study: Study) -> int:
    """Return the variant's number of settings, including those that its scale omits.

    Returns 0 if the number is unknown. `study` comes from `reported_study`.
    """
    request = PlanRequest(settings=Variant.read(key.overrides).settings)
    try:
        return named_trials(study, study.scale(key.scale), _text(key.corpus), request)[2]
    except UserError:
        return 0


def reported_study(key: StudyKey, study: Study) -> Study:
    """Return the study with the variant's models, and with its group names in the analyses.

    A study's file names groups as at scale paper. Raises UserError for a faulty study.
    """
    study = Variant.read(key.overrides).study(study)
    if study.tuning is not None:
        return study
    try:
        groups = groups_by_written(study, study.scale(key.scale), _text(key.corpus))
    except UserError:  # a changed study file must not hide stored results
        return study
    return study.with_requests(lambda request: request.with_groups(groups))


def takes_seeds(study: Study) -> bool:
    """Return whether `--seeds` applies to this study."""
    configs = _all_configs(study, _text()) if not study.tuning else ()
    return not obstacle_to_seeds(study, configs)


def is_paper_scale(study: Study, scale: str) -> bool:
    """Return whether `scale` runs exactly the trials of scale paper.

    For a study that reads text, only scale paper does. Raises UserError for a faulty study.
    """
    if scale == "paper":
        return True
    if study.reads_text or study.tuning is not None or scale not in study.scale_names:
        return study.is_own
    if study.seeds_at(scale) != study.seeds_at("paper"):
        return False
    all_configs = _all_configs(study, _text())
    return all_configs == [
        _resize(study, study.scale(scale), config)
        for config in _at_scale(study, study.scale(scale), all_configs)
    ]


def tuning_plan(
    study: Study, scale: Scale, corpus: CorpusConfig, request: PlanRequest
) -> TuningPlan | None:
    """Return the plan of a study that tunes, else None. Raises UserError for a wrong option."""
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

    def resolve(config: AnyConfig) -> AnyConfig:
        [resolved_config] = apply_settings([_resize(study, scale, config)], values)
        return resolved_config

    with _study_faults(study, "its tuning"):
        bases = {side: base(corpus) for side, base in study.tuning.sides.items()}
        # Apply the settings to all sides at once: then the message about a key that only some
        # sides have is precise.
        apply_settings([_resize(study, scale, base) for base in bases.values()], values)
        return plan_tuning(study.tuning, bases, scale.name, resolve, request)


def _text(name: str = NO_TEXT.name) -> CorpusConfig:
    return CorpusConfig(name=name, sha256=NO_TEXT.sha256)


def _all_configs(study: Study, corpus: CorpusConfig) -> list[AnyConfig]:
    with _study_faults(study, "its trials function"):
        configs = list(study.trials(corpus))
    if not configs:
        raise UserError(
            f"study {study.name}: needs at least one trial, and has none for corpus {corpus.name}."
        )
    invalid = next((config for config in configs if not isinstance(config, KINDS)), None)
    if invalid is not None:
        raise UserError(
            f"study {study.name}: yields a {type(invalid).__name__}. Yield a "
            f"{', '.join(kind.__name__ for kind in KINDS[:-1])} or {KINDS[-1].__name__}."
        )
    with _study_faults(study, "its trials function"):
        # Workers read configs from JSON. A config that bypassed validation would be a different
        # trial on a worker.
        return [read_config(config.model_dump(mode="json", warnings="error")) for config in configs]


def _at_scale(study: Study, scale: Scale, all_configs: Sequence[AnyConfig]) -> Sequence[AnyConfig]:
    corner = study.corner or (None if study.is_own else smoke_corner)
    pick = {"smoke": corner, "quick": study.quick}.get(scale.name)
    if pick is None:
        return all_configs
    with _study_faults(study, f"its {'corner' if scale.name == 'smoke' else 'quick'} function"):
        return list(pick(all_configs))


def _resize(study: Study, scale: Scale, config: AnyConfig) -> AnyConfig:
    if study.scales is not None:
        values = study.scales.get(scale.name, {})
        return replaced(config.model_dump(mode="json"), values, read_config, "scales")
    return apply_scale(scale, config) if study.scaled else config


@contextmanager
def _study_faults(study: Study, part: str) -> Iterator[None]:
    """Report any exception as a fault in this `part` of the user's study."""
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
