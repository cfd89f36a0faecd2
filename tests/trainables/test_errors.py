import pytest
from pydantic import ValidationError

from trainables.config import GssConfig
from trainables.errors import did_you_mean, first_line, first_problem, last_line


@pytest.mark.parametrize(
    ("error", "first", "last"),
    [
        (ValueError("\nno such thing:\n  at line 3.\n"), "no such thing", "  at line 3."),
        (KeyboardInterrupt(), "KeyboardInterrupt", "KeyboardInterrupt"),
        ("one.\ntwo", "one", "two"),
        ("", "", ""),
    ],
)
def test_error_has_first_and_last_line(error: BaseException | str, first: str, last: str) -> None:
    assert (first_line(error), last_line(error)) == (first, last)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"c": 0.0, "kk": 2.0}, "kk: Extra inputs are not permitted; did you mean k?"),
        ({"c": 0.0}, "k: Field required"),
        ({"c": 0.0, "k": 2.0, "bend": 1}, "bend: Extra inputs are not permitted"),
    ],
)
def test_misspelt_name_comes_first(fields: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValidationError) as raised:
        GssConfig.model_validate(fields)
    assert first_problem(raised.value) == sentence


def test_near_names_are_suggested() -> None:
    assert did_you_mean("gird", ("tpe", "random", "grid")) == "did you mean grid? "
    assert did_you_mean("xyz", ("tpe", "random", "grid")) == ""
