"""A study with Transformers in place of its AWD-LSTMs: what stays, what goes, and which studies
have no use for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from search_spaces.analyses import Analysis, Correlation
from search_spaces.catalog import load_study
from search_spaces.model_kinds import LSTM, TRANSFORMER, with_model
from search_spaces.study import Study
from search_spaces.transformer import transformer
from trainables.config import (
    CorpusConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
    TrialConfig,
    TrueRankConfig,
    output_layer_of,
)
from trainables.config.kinds import AnyConfig
from trainables.errors import UserError

PTB = CorpusConfig(name="ptb", sha256="0" * 64)
MARKOV = CorpusConfig(name="markov", sha256="1" * 64)
TAKEN = (
    *(
        "gss_grid",
        "seeds",
        "plif_frozen",
        "mos_k",
        "mos_dropout",
        "rank_metrics",
        "word_similarity",
        "plif_lm",
    ),
    "softcap",
)
REFUSED = {
    "averaging": "which differ in their AWD-LSTM alone",
    "qualitative": "which differ in their AWD-LSTM alone",
    "fair_capacity": "fair_capacity tunes",
    "layer_gates": "layer_gates does not",
    "press_robustness": "press_robustness does not",
    "published": "published does not",
    "dirichlet": "dirichlet does not",
    "spam": "on the text of --corpus, and spam does not",
    "head_rank": "head_rank has its own Transformers",
    "saturation": "saturation has its own Transformers",
    "confounders": "confounders has its own Transformers",
}


@pytest.mark.parametrize("name", TAKEN)
def test_layer_corpus_and_seed_of_every_trial_stay_and_all_else_is_the_recipe(name: str) -> None:
    study = load_study(name)
    lstms, models = list(study.trials(PTB)), list(with_model(study, TRANSFORMER).trials(PTB))
    assert len(models) == len(lstms)
    for lstm, model in zip(lstms, models, strict=True):
        assert isinstance(lstm, TrialConfig) and isinstance(model, TransformerTrialConfig)
        assert (model.corpus, model.output_layer, model.seed) == (
            lstm.corpus,
            lstm.output_layer,
            lstm.seed,
        )
        assert model == transformer(PTB, model.output_layer, seed=model.seed)
        assert study.label(model) == study.label(lstm)


@pytest.mark.parametrize("name", REFUSED)
def test_a_study_that_has_no_use_for_it_says_why_in_a_sentence(name: str) -> None:
    with pytest.raises(UserError, match=f"--model .*{REFUSED[name]}.*: leave it out"):
        list(with_model(load_study(name), TRANSFORMER).trials(PTB))


def test_the_rules_of_averaging_are_nothing_to_a_transformer() -> None:
    with pytest.raises(
        UserError,
        match="'softmax NT-ASGD seed=141' and 'softmax ET-ASGD seed=141', which differ in",
    ):
        list(with_model(load_study("averaging"), TRANSFORMER).trials(PTB))


def test_the_truth_of_a_generated_language_stays() -> None:
    trials = list(with_model(load_study("rank_metrics"), TRANSFORMER).trials(MARKOV))
    kinds = [type(trial) for trial in trials]
    assert kinds == [TrueRankConfig] * 3 + [TransformerTrialConfig] * 6
    layers = [layer.name for trial in trials if (layer := output_layer_of(trial)) is not None]
    assert len(set(layers)) == 6


@pytest.mark.parametrize("name", TAKEN)
def test_nothing_printed_of_an_lstm_stands_beside(name: str) -> None:
    study = load_study(name)
    changed = with_model(study, TRANSFORMER)
    requests = [request for request in changed.analyses if isinstance(request, Analysis)]
    assert len(changed.analyses) == len(study.analyses)
    assert not any(request.has_published for request in requests)
    assert not any(request.windows for request in requests if isinstance(request, Correlation))
    assert "Transformers" in changed.deviations[-1]


def test_the_model_that_a_study_has_changes_nothing() -> None:
    study = load_study("gss_grid")
    changed = with_model(study, LSTM)
    assert list(changed.trials(PTB)) == list(study.trials(PTB))
    assert changed.analyses == study.analyses


def mixed(corpus: CorpusConfig) -> Iterator[AnyConfig]:
    yield TrialConfig(seed=1, corpus=corpus, output_layer=SoftmaxConfig())
    yield transformer(corpus, SoftmaxConfig())


@pytest.mark.parametrize("model", [LSTM, TRANSFORMER])
def test_a_study_that_has_transformers_itself_takes_no_model(model: str) -> None:
    with pytest.raises(UserError, match="mixed has its own Transformers: leave it out"):
        list(with_model(Study(name="mixed", trials=mixed), model).trials(PTB))


def test_a_model_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(
        UserError,
        match=r"unknown --model 'transfromer': did you mean transformer.* lstm, transformer",
    ):
        with_model(load_study("gss_grid"), "transfromer")
