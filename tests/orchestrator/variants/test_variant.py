from __future__ import annotations

import pytest

from orchestrator.variants import Variant, chosen_variant, other_model, parse_settings
from trainables.errors import UserError

VARIANT = Variant(
    settings={"training.epochs": (3,), "a": (5, 10.5), "list": ([0.1, 0.2],)},
    model="transformer",
    search="grid",
    contexts="my words.json 1a2b3c4d",
    benchmarks="sims 5e6f7a8b",
)


def test_text_is_read_back() -> None:
    assert Variant.read(VARIANT.text) == VARIANT
    assert Variant().text == "{}" and Variant.read("{}") == Variant()
    swapped = Variant(settings=dict(reversed(list(VARIANT.settings.items()))))
    assert swapped.text == Variant(settings=VARIANT.settings).text


def test_options_select_the_variant() -> None:
    assert VARIANT.options == {
        "--model": ["transformer"],
        "--set": ["a=5,10.5", "list=[0.1, 0.2]", "training.epochs=3"],
        "--search": ["grid"],
        "--contexts": ["my words.json"],
        "--benchmarks": ["sims"],
    }
    assert VARIANT.typed[:2] == ["--model transformer", "--set a=5,10.5"]
    assert parse_settings(VARIANT.options["--set"]) == VARIANT.settings
    assert Variant().options == {} and Variant().typed == []


@pytest.mark.parametrize(
    "text", ["no JSON", "[" * 100_000, "null", '{"settings":{"a":3}}', '{"a":1}', '{"settings":3}']
)
def test_other_text_is_the_study(text: str) -> None:
    assert Variant.read(text) == Variant()


@pytest.mark.parametrize("text", ['{"contexts":3,"search":[1]}', '{"settings":{"a":"bc"}}'])
def test_strange_values_become_text(text: str) -> None:
    assert Variant.read(text).typed


def test_variant_is_chosen_by_settings() -> None:
    typed = parse_settings(["search=random", "contexts=my words.json 1a2b3c4d", "a=1"])
    chosen = chosen_variant(typed, "lstm")
    assert chosen == Variant(
        settings={"a": (1,)}, search="random", contexts="my words.json 1a2b3c4d"
    )


def test_default_model_is_no_change() -> None:
    assert other_model(None) is other_model("lstm") is None
    with pytest.raises(UserError, match="unknown --model 'gru'"):
        other_model("gru")
