"""Checks of a plan before any training."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from orchestrator.plan.texts import test_tokens, valid_tokens
from orchestrator.store import PlannedTrial
from orchestrator.words import some_of
from search_spaces.study import AgainstBaselines, Analysis, Study
from trainables.config import (
    METRICS,
    MIN_STREAM,
    AnyConfig,
    LanguageTrialConfig,
    TransformerTrialConfig,
    flat_values,
)
from trainables.corpora import CorpusIdentity
from trainables.errors import UserError, did_you_mean

GROUPS_SHOWN = 8


def require_different(study: Study, trials: Iterable[PlannedTrial], *, cure: str) -> None:
    """Raise UserError if two trials have the same config."""
    names: dict[str, str] = {}
    for trial in trials:
        name, other_name = trial.name, names.get(trial.trial_id)
        if other_name is not None:
            fault = "is planned twice" if other_name == name else f"is the same as {other_name!r}"
            raise UserError(f"study {study.name}: the trial {name!r} {fault}. {cure}")
        names[trial.trial_id] = name


def require_names(study: Study, configs: Sequence[AnyConfig]) -> None:
    """Raise UserError if an analysis uses a config key or a metric that no trial can have.

    Accepts every metric if the metrics of a trial's kind are unknown.
    """
    requests = [request for request in study.analyses if isinstance(request, Analysis)]
    keys = {key for config in configs for key in flat_values(config.model_dump(mode="json"))}
    kinds = {config.kind for config in configs}
    metrics = {metric for kind in kinds for metric in METRICS.get(kind, "*").split()}
    for request in requests:
        for key in request.config_keys:
            if key not in keys:
                raise UserError(
                    f"study {study.name}: an analysis uses the key {key!r}, which no trial has: "
                    f"{did_you_mean(key, keys)}Print the keys with --dry-run --format json."
                )
        for name in request.metric_names:
            if not any(fnmatchcase(name, metric) for metric in metrics | keys):
                raise UserError(
                    f"study {study.name}: an analysis or --metric uses {name!r}, which its trials "
                    f"do not have: {did_you_mean(name, metrics)}See docs/measurements.md."
                )


def require_groups(
    study: Study, planned_groups: Iterable[str], all_groups: Callable[[], Collection[str]]
) -> None:
    """Raise UserError if an analysis compares a group that has no trials, even at paper scale."""
    compared_groups = {
        group
        for request in study.analyses
        if isinstance(request, AgainstBaselines)
        for pair in [*request.baselines.items(), (request.baseline,)]
        for group in pair
        if group
    }
    missing_groups = compared_groups.difference(planned_groups)
    groups = all_groups() if missing_groups else ()
    for group in sorted(missing_groups.difference(groups)):
        raise UserError(
            f"study {study.name}: an analysis compares {group!r}, which is not a group: "
            f"{did_you_mean(group, groups)}Groups are trials' names without the seed: "
            f"{some_of(sorted(groups), GROUPS_SHOWN)}. Correct the analysis."
        )


def require_text(config: LanguageTrialConfig, corpus: CorpusIdentity) -> None:
    """Raise UserError if a split is too short for its batch size.

    Each row of a batch reads its own stream of at least MIN_STREAM tokens. Transformer training
    needs a window plus one token in each stream.
    """
    evaluation, training = config.evaluation, config.training
    stream = MIN_STREAM
    if isinstance(config, TransformerTrialConfig):
        _require_one_window(config)
        stream = max(MIN_STREAM, config.training.window + 1)
    splits = (
        ("train", corpus.train_tokens, training.batch_size, stream),
        ("valid", valid_tokens(config, corpus), evaluation.valid_batch_size, MIN_STREAM),
        ("test", test_tokens(config, corpus), evaluation.test_batch_size, MIN_STREAM),
    )
    for split, tokens, batch, minimum in splits:
        if tokens < minimum * batch:
            window = f" with windows of {minimum - 1}" if minimum > MIN_STREAM else ""
            raise UserError(
                f"a batch of {batch}{window} needs at least {minimum * batch} tokens, but the "
                f"{split} text of {corpus.name} has {tokens}. Use a longer corpus or a smaller "
                f"batch size."
            )


def _require_one_window(config: TransformerTrialConfig) -> None:
    training_window, evaluation_window = config.training.window, config.evaluation.window
    if training_window != evaluation_window:
        raise UserError(
            f"evaluation.window is {evaluation_window}, but training.window is {training_window}. "
            f"Use --set training.window={training_window} --set evaluation.window={training_window}"
        )
