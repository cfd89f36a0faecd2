"""Variants of a study: what makes one, how a study's key keeps it, and how that is typed."""

from __future__ import annotations

from orchestrator.variants.overrides import read_overrides
from orchestrator.variants.swept_settings import as_typed
from search_spaces.model_kinds import LSTM, OPTION, require_model, with_model
from search_spaces.study import Study


def model_override(model: str | None) -> dict[str, str]:
    """What makes this another variant, for `StudyKey.overrides`; nothing for the study's own model.

    Raises UserError for a model that there is not.
    """
    if model is None or model == LSTM:
        return {}
    require_model(model)
    return {OPTION: model}


def model_of(overrides: str) -> str:
    """What was typed after `--model` of a variant, whose overrides these are: "lstm" where nothing
    was."""
    return str(read_overrides(overrides).get(OPTION, LSTM))


def typed_model(overrides: str) -> list[str]:
    """The option with its value, as two words; none for the study's own model."""
    model = model_of(overrides)
    return [] if model == LSTM else [OPTION, model]


def typed_settings(overrides: str) -> list[str]:
    """A variant's settings as they are typed after `--set`: "training.learning_rate=5,10"; no text
    where it holds no settings. `typed_variant` says these and its model."""
    # Stored as JSON, which has lists for tuples.
    return [
        f"{name}={as_typed(tuple(value) if isinstance(value, list) else value)}"
        for name, value in read_overrides(overrides).items()
        if name != OPTION
    ]


def typed_variant(overrides: str) -> list[str]:
    """What is typed for a variant, an option with its value each: "--model transformer", "--set
    training.epochs=3"."""
    settings = [f"--set {setting}" for setting in typed_settings(overrides)]
    model = " ".join(typed_model(overrides))
    return [model, *settings] if model else settings


def study_of(study: Study, overrides: str) -> Study:
    """The study as this variant of it was planned: with another model in place of its own, or as it
    is."""
    model = model_of(overrides)
    return study if model == LSTM else with_model(study, model)
