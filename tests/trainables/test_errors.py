import pytest

from trainables.errors import did_you_mean, first_line, last_line


@pytest.mark.parametrize(
    ("error", "first", "last"),
    [
        (ValueError("\nno such thing:\n  at line 3.\n"), "no such thing", "  at line 3."),
        (KeyboardInterrupt(), "KeyboardInterrupt", "KeyboardInterrupt"),
        ("one.\ntwo", "one", "two"),
        ("", "", ""),
    ],
)
def test_a_line_of_an_error_stands_for_it(error: BaseException | str, first: str, last: str) -> None:
    assert (first_line(error), last_line(error)) == (first, last)


def test_what_may_have_been_meant_is_named() -> None:
    assert did_you_mean("gird", ("tpe", "random", "grid")) == "did you mean grid? "
    assert did_you_mean("xyz", ("tpe", "random", "grid")) == ""
