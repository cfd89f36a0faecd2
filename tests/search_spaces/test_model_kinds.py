from __future__ import annotations

import pytest

from search_spaces.analyses import Analysis, Correlation
from search_spaces.catalog import load_study
from search_spaces.model_kinds import TRANSFORMER, with_model
from search_spaces.transformer import transformer
from trainables.config import (
    CorpusConfig,
    TransformerTrialConfig,
    TrialConfig,
    TrueRankConfig,
    output_layer_of,
)
from trainables.errors import UserError

PTB = CorpusConfig(name="ptb", sha256="0" * 64)
MARKOV = CorpusConfig(name="markov", sha256="1" * 64)
TAKEN = ("gss_grid", "seeds", "mos_k", "rank_metrics", "word_similarity", "softcap")
REFUSED = {
    "averaging": "'softmax NT-ASGD seed=141' and 'softmax ET-ASGD seed=141'.* AWD-LSTM",
    "qualitative": "only in their AWD-LSTM",
    "fair_capacity": "fair_capacity tunes",
    "layer_gates": "layer_gates does not",
    "spam": "on the text of --corpus",
    "head_rank": "its own Transformers",
}


@pytest.mark.parametrize("name", TAKEN)
def test_model_keeps_layer_and_seed(name: str) -> None:
    study = load_study(name)
    changed = with_model(study, TRANSFORMER)
    for lstm, model in zip(study.trials(PTB), changed.trials(PTB), strict=True):
        assert isinstance(lstm, TrialConfig)
        assert model == transformer(PTB, lstm.output_layer, seed=lstm.seed)
        assert study.label(model) == study.label(lstm)
    assert len(changed.analyses) == len(study.analyses)
    for request in changed.analyses:
        assert not (isinstance(request, Analysis) and request.has_published)
        assert not (isinstance(request, Correlation) and request.windows)
    assert "Transformers" in changed.deviations[-1]


@pytest.mark.parametrize("name", REFUSED)
def test_study_without_use_for_transformers_says_why(name: str) -> None:
    with pytest.raises(UserError, match=f"--model: .*{REFUSED[name]}.* Leave"):
        list(with_model(load_study(name), TRANSFORMER).trials(PTB))


def test_model_keeps_the_generated_truth() -> None:
    trials = list(with_model(load_study("rank_metrics"), TRANSFORMER).trials(MARKOV))
    kinds = [type(trial) for trial in trials]
    assert kinds == [TrueRankConfig] * 3 + [TransformerTrialConfig] * 6
    layers = [layer.name for trial in trials if (layer := output_layer_of(trial)) is not None]
    assert len(set(layers)) == 6


def test_unknown_model_lists_the_choices() -> None:
    with pytest.raises(
        UserError,
        match=r"unknown --model 'transfromer': did you mean transformer.* lstm, transformer",
    ):
        with_model(load_study("gss_grid"), "transfromer")
