"""Several values behind `--set`: their trials are those that each value has alone."""

from __future__ import annotations

from itertools import product
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from orchestrator.notebook.frames import plain_settings
from orchestrator.notebook.sweeps import _words
from orchestrator.plan import Plan, PlanRequest, make_plan, scale_named
from orchestrator.variants import (
    as_setting,
    as_typed,
    overrides_json,
    parse_overrides,
    typed_settings,
    without_settings,
)
from orchestrator.variants.swept_settings import values_in
from search_spaces.catalog import load_study
from search_spaces.study import group_of
from trainables.errors import UserError

RATE, EPOCHS = "training.learning_rate", "training.epochs"


def plan_of(
    study: str = "gss_grid", corpus: str = "pydocs", scale: str = "smoke", **request: Any
) -> Plan:
    return make_plan(load_study(study), scale_named(scale), corpus, PlanRequest(**request))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20,5,10", (5, 10, 20)),
        ("1e-1, 5,5.0", (0.1, 5)),
        ("sgd,adam", ("adam", "sgd")),
        ('"a,b",c', ("a,b", "c")),
        ("null,1000", (1000, None)),
        ("[1,2]", [1, 2]),
        ("[1,2],[3]", ([1, 2], [3])),
        ('"a,b"', "a,b"),
        ("3,3", 3),
        ('{"name": "nt_asgd", "x": 1}', {"name": "nt_asgd", "x": 1}),
        ('{"name": "nt_asgd", "x"', '{"name": "nt_asgd", "x"'),
        ("", ""),
    ],
)
def test_values_have_commas_between_them_and_json_keeps_its_own(text: str, value: object) -> None:
    assert parse_overrides([f"key={text}"]) == {"key": value}


@pytest.mark.parametrize(
    "typed",
    [
        "true",
        "null",
        '{"name": "softmax"}',
        '"x,y"',
        "true,false",
        "5,10",
        "0.1",
        "nt_asgd",
        '"7"',
        "adam,sgd",
        "a b",
    ],
)
def test_what_is_shown_of_a_variant_is_read_back_as_it_was_typed(typed: str) -> None:
    overrides = parse_overrides([f"some.key={typed}", "other=1"])
    shown = typed_settings(overrides_json(overrides))
    assert sorted(setting.partition("=")[0] for setting in shown) == ["other", "some.key"]
    assert parse_overrides(shown) == overrides


@pytest.mark.parametrize("text", ["{}", "damaged", "[1]", "3"])
def test_what_holds_no_settings_shows_none(text: str) -> None:
    assert typed_settings(text) == []


def test_from_python_a_list_is_what_commas_are() -> None:
    settings = {
        RATE: [20.0, 5.0],
        "training.optimizer": ("sgd", "adam"),
        "learning_rates": [[0.1, 0.2]],
        "bptt": [70],
    }
    words = [word.removeprefix("--set=") for word in _words({"settings": settings})]
    typed = {
        RATE: (5.0, 20.0),
        "training.optimizer": ("adam", "sgd"),
        "learning_rates": [0.1, 0.2],
        "bptt": 70,
    }
    assert parse_overrides(words) == plain_settings(settings) == typed
    assert overrides_json(typed) == overrides_json(parse_overrides(words[::-1]))


def test_the_trials_are_those_of_the_values_one_by_one() -> None:
    rates, epochs = (0.01, 0.001), (1, 2)
    swept = plan_of(overrides={RATE: rates, EPOCHS: epochs}, seeds=2)
    alone = {
        values: plan_of(overrides=dict(zip((RATE, EPOCHS), values, strict=True)), seeds=2)
        for values in product(rates, epochs)
    }
    ids = {trial.trial_id: trial.name for trial in swept.trials}
    assert len(ids) == len(swept.trials) == 4 * 2 * 4
    assert set(ids) == {trial.trial_id for plan in alone.values() for trial in plan.trials}
    assert len(set(ids.values())) == len(ids)
    for (rate, epoch), plan in alone.items():
        for trial in plan.trials:
            group = group_of(trial.name)
            completed = f"{group}, {EPOCHS}={epoch}, {RATE}={rate:g}"
            assert ids[trial.trial_id] == completed + trial.name.removeprefix(group)
            assert without_settings(completed, (EPOCHS, RATE)) == group
    assert swept.key.overrides == '{"training.epochs":[1,2],"training.learning_rate":[0.01,0.001]}'


def test_a_trial_without_the_setting_is_there_once() -> None:
    swept = plan_of("rank_metrics", "markov", overrides={EPOCHS: (1, 2)})
    names = [trial.name for trial in swept.trials]
    truths = [name for name in names if name.startswith("truth")]
    assert truths and len(truths) == len(set(truths)) and not any(EPOCHS in name for name in truths)
    models = [name for name in names if name not in truths]
    assert len(models) == 2 * len(plan_of("rank_metrics", "markov").trials) - 2 * len(truths)


@pytest.mark.parametrize(
    ("study", "setting", "sentence"),
    [
        ("gss_grid", "output_layer.c=1,2", "drop the --set of what its trials differ in"),
        ("gss_grid", "seed=1,2", "type --seeds N"),
        ("gss_grid", "training.epochs=1,,2", "one of training.epochs's is empty"),
        (
            "gss_grid",
            'training.averaging={"name": "nt_asgd"},{"name": "et_asgd"}',
            "a whole part of a config",
        ),
        ("gss_grid", "training.epoch=1,2", "did you mean training.epochs"),
        ("gss_grid", "training.epochs=1,many", "training.epochs the value 'many'"),
        (
            "fair_capacity",
            "training.epochs=1,2",
            "fair_capacity tunes: give training.epochs one value",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(study: str, setting: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        plan_of(study, overrides=parse_overrides([setting]))


@given(
    st.lists(
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.integers(), max_size=2)
        ),
        min_size=1,
    )
)
@example(["a,b"])
@example(["5", "true", 5])
@example([[0.01, 0.02]])
@example(['"', " a", "[1"])
def test_what_is_typed_for_a_setting_is_read_as_it(values: list[Any]) -> None:
    try:
        setting = as_setting("key", values)
    except UserError:
        return
    assert as_setting("key", values_in(as_typed(setting))) == setting
    assert as_setting("key", reversed(values)) == setting
