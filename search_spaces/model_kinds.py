"""Option `--model`: a study with another kind of language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from search_spaces.study import Study
from search_spaces.transformer import transformer
from trainables.config import AnyConfig, CorpusConfig, LanguageTrialConfig, TrialConfig
from trainables.errors import UserError, did_you_mean

LSTM, TRANSFORMER = "lstm", "transformer"
MODELS = (LSTM, TRANSFORMER)
OPTION = "--model"


def with_model(study: Study, model: str) -> Study:
    """Return the study with language models of one kind; "lstm" changes nothing.

    "transformer" replaces each AWD-LSTM by the recipe's Transformer of equal corpus, output layer
    and seed, and removes published values. Raises UserError for an unknown model or unsuitable
    study. Iterating the trials raises it if two Transformers would be equal.
    """
    require_model(model)
    if study.tuning is not None:
        raise UserError(
            f"{OPTION}: {study.name} tunes settings of an AWD-LSTM. Leave {OPTION} out."
        )
    if not (study.reads_text and study.trains):
        raise UserError(
            f"{OPTION}: {study.name} does not train language models on the text of --corpus. "
            f"Leave {OPTION} out."
        )
    if model == LSTM:
        return replace(
            study, trials=lambda corpus: _require_lstms(study, list(study.trials(corpus)))
        )
    return replace(
        study.with_requests(lambda request: request.without_published()),
        trials=lambda corpus: list(_transformers(study, corpus)),
        deviations=(
            *study.deviations,
            "Transformers with this project's recipe replace the source's AWD-LSTMs. The source "
            "prints no values of such models.",
        ),
    )


def require_model(model: str) -> None:
    """Raise UserError for an unknown model."""
    if model not in MODELS:
        raise UserError(
            f"unknown {OPTION} {model!r}: {did_you_mean(model, MODELS)}Choose from "
            f"{', '.join(MODELS)}"
        )


def _transformers(study: Study, corpus: CorpusConfig) -> Iterator[AnyConfig]:
    configs = list(study.trials(corpus))
    lstms = _require_lstms(study, configs)
    names: dict[str, str] = {}
    for config in lstms:
        if not isinstance(config, TrialConfig):
            yield config
            continue
        replacement = transformer(config.corpus, config.output_layer, seed=config.seed)
        if replacement.trial_id in names:
            raise UserError(
                f"{OPTION}: {names[replacement.trial_id]!r} and {study.label(config)!r} of "
                f"{study.name} differ only in their AWD-LSTM. Leave {OPTION} out."
            )
        names[replacement.trial_id] = study.label(config)
        yield replacement


def _require_lstms(study: Study, configs: Sequence[AnyConfig]) -> Sequence[AnyConfig]:
    models = [config for config in configs if isinstance(config, LanguageTrialConfig)]
    if not models or not all(isinstance(config, TrialConfig) for config in models):
        models_text = "its own Transformers" if models else "no AWD-LSTMs"
        raise UserError(f"{OPTION}: {study.name} trains {models_text}. Leave {OPTION} out.")
    return configs
