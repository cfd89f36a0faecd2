from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from trainables.config import CorpusConfig, GssConfig, TrialConfig
from trainables.config.frozen import ADDED_LATER, canonical_json, completed, identity
from trainables.errors import UserError

CORPUS = CorpusConfig(name="ptb", sha256="ab" * 32)


def trial(seed: int = 141, c: float = -1.5, k: float = 2.5) -> TrialConfig:
    return TrialConfig(seed=seed, corpus=CORPUS, output_layer=GssConfig(c=c, k=k))


def identity_json(config: TrialConfig) -> str:
    return canonical_json(identity(config.model_dump(mode="json")))


def test_number_format_keeps_the_trial() -> None:
    spelled = TrialConfig.model_validate(json.loads(identity_json(trial(c=0, k=2))))
    assert spelled == trial(c=-0.0, k=2.0)
    assert spelled.trial_id == trial(c=-0.0, k=2.0).trial_id


@given(st.integers(0, 2**62), st.floats(-5, 5), st.floats(0.1, 5))
def test_config_survives_json(seed: int, c: float, k: float) -> None:
    config = trial(seed, c, k)
    assert TrialConfig.model_validate_json(identity_json(config)).trial_id == config.trial_id


def test_copies_are_validated() -> None:
    """Without validation, a copied trial could have another id after a conversion to JSON."""
    layer = trial().output_layer.model_copy(update={"c": -0.0})
    copy = trial().model_copy(update={"output_layer": layer})
    assert TrialConfig.model_validate_json(identity_json(copy)).trial_id == copy.trial_id
    for update in ({"learning_rate": 3.0}, {"seed": -1}):
        with pytest.raises(ValidationError):
            trial().model_copy(update=update)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": -1},
        {"training": {"batch_size": 0}},
        {"training": {"learning_rate": float("nan")}},
        {"model": {"dropout_hidden": 1.0}},
        {"output_layer": {"name": "gss", "c": 0.0, "k": float("inf")}},
        {"output_layer": {"name": "unheard_of"}},
        {"unheard_of": 1},
        {"model": {"context_width": 30}},
        {"model": {"head_rank": 401}},
        {"corpus": {"name": "ptb", "sha256": "ab" * 32, "vocabulary_limit": 2}},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TrialConfig.model_validate(json.loads(identity_json(trial())) | wrong)


def test_identity_omits_later_defaults() -> None:
    before = trial().model_dump(mode="json")
    for section, added in ADDED_LATER["language_model"].items():
        for name, value in added.items():
            assert before[section].pop(name) == value
    assert json.loads(identity_json(trial())) == before
    assert completed(before) == trial().model_dump(mode="json")
    adam = trial().training.model_copy(update={"optimizer": "adam", "warm_up_tokens": 1})
    changed = trial().model_copy(update={"training": adam})
    before["training"] |= {"optimizer": "adam", "warm_up_tokens": 1}
    assert json.loads(identity_json(changed)) == before
    assert completed(before) == changed.model_dump(mode="json")
    truth = {"kind": "true_rank", "evaluation": {"test_tokens": 5, "epoch_rank_contexts": 7}}
    assert identity(truth) == completed(truth) == truth
    assert identity({"seed": 1}) == completed({"seed": 1}) == {"seed": 1}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"training.learning_rat": 5.0}, "did you mean training.learning_rate"),
        ({"kind": "dirichlet"}, "no key 'kind'"),
        ({"training.epochs": 0}, "training.epochs: .*greater than 0; got 0"),
        ({"model.embedding_width": 3}, "ties its weights"),
        ({"model.head_rank": 999}, "at most the width"),
        ({"training": 1, "training.epochs": 3}, "'training' is not a section but 1"),
    ],
)
def test_impossible_config_gets_one_sentence(values: dict[str, object], sentence: str) -> None:
    config = trial(1, 0.0, 2.0)
    with pytest.raises(UserError, match=sentence):
        config.with_values(values)
