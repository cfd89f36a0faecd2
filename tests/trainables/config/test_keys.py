import pytest

from trainables.config.keys import dotted_keys, flat_values, value_at, with_values

CONTENT = {
    "kind": "x",
    "seed": 1,
    "training": {"epochs": 3, "averaging": {"kind": "nt"}},
    "settings": {},
}


def test_nested_setting_has_dotted_key() -> None:
    keys = "kind seed training training.epochs training.averaging training.averaging.kind settings"
    assert dotted_keys(CONTENT) == keys.split()
    values = {"seed": 1, "training.epochs": 3, "training.averaging.kind": "nt"}
    assert flat_values(CONTENT) == values
    for key, value in values.items():
        assert value_at(CONTENT, key) == value
    with pytest.raises(KeyError):
        value_at(CONTENT, "training.epoch")


def test_replacing_values_makes_a_copy() -> None:
    replaced = with_values(CONTENT, {"training.averaging": None, "training.epochs": 4, "seed": 2})
    assert replaced == {**CONTENT, "seed": 2, "training": {"epochs": 4, "averaging": None}}
    assert CONTENT["training"] == {"epochs": 3, "averaging": {"kind": "nt"}}
