from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from orchestrator.variants import (
    apply_settings,
    as_typed,
    parse_settings,
    setting_values,
    values_in,
)
from tests.support import tiny_trial
from trainables.config import NtAsgdConfig, SoftmaxConfig, TrialConfig
from trainables.errors import UserError

CONFIG = tiny_trial.trial()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.5", (0.5,)),
        ("word", ("word",)),
        ('"1"', ("1",)),
        ("20,5,10", (5, 10, 20)),
        ("1e-1, 5,5.0", (0.1, 5)),
        ("sgd,adam", ("adam", "sgd")),
        ('"a,b","c"', ("a,b", "c")),
        ("null,1000", (1000, None)),
        ("1,true", (1, True)),
        ("[1,2],[3]", ([1, 2], [3])),
        ('{"name": "nt_asgd", "x": 1}', ({"name": "nt_asgd", "x": 1},)),
        ('{"name": "nt_asgd", "x"', ('{"name": "nt_asgd", "x"',)),
        ("", ("",)),
        ("9" * 5000, ("9" * 5000,)),
        ("[" * 100_000, ("[" * 100_000,)),
    ],
)
def test_commas_separate_values(text: str, values: tuple[Any, ...]) -> None:
    assert parse_settings([f"key={text}"]) == {"key": values}


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.integers(), max_size=2)
)


@given(st.lists(VALUES, min_size=1))
@example(["a,b"])
@example(["5", "true", 5])
@example([[0.01, 0.02]])
@example(['"', " a", "[1"])
def test_typed_values_are_read_back(values: list[Any]) -> None:
    try:
        setting = setting_values("key", values)
    except UserError:
        return
    assert setting_values("key", values_in(as_typed(setting))) == setting
    assert setting_values("key", reversed(values)) == setting


def test_settings_replace_values_and_parts() -> None:
    [changed] = apply_settings(
        [CONFIG], {"training.averaging": {"name": "nt_asgd"}, "corpus.vocabulary_limit": 50}
    )
    assert isinstance(changed, TrialConfig)
    assert changed.training.averaging == NtAsgdConfig(nonmonotone_interval=5)
    assert changed.corpus.vocabulary_limit == 50
    [other] = apply_settings([CONFIG], {"output_layer": {"name": "softmax"}})
    assert isinstance(other, TrialConfig) and other.output_layer == SoftmaxConfig()


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("training.epochs", "key=value"),
        ("=3", "key=value"),
        ("training.epochs=1,,2", "empty"),
        ("seed=1,2", "--seeds"),
        ('training.averaging={"name": "nt_asgd"},{"name": "et_asgd"}', "section"),
    ],
)
def test_malformed_settings_are_refused(setting: str, word: str) -> None:
    with pytest.raises(UserError, match=word):
        parse_settings([setting])


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("training.epoch", 1, "did you mean training.epochs"),
        ("training.epochs", "many", "got 'many'"),
        ("corpus.name", "x", "cannot change"),
        ("output_layer.name", "gss", "whole layer"),
    ],
)
def test_unsettable_keys_are_refused(key: str, value: Any, word: str) -> None:
    with pytest.raises(UserError, match=word):
        apply_settings([CONFIG], {key: value})
