from __future__ import annotations

from collections.abc import Callable

import pytest

from orchestrator.report import formats

MINUS, DASH = formats.MINUS, "\N{EN DASH}"


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (formats.number, None, DASH),
        (formats.number, float("nan"), DASH),
        (formats.number, 24_220_000, "24,220,000"),
        (formats.number, 12.34567, "12.346"),
        (formats.number, 1_234_567.8, "1,234,568"),
        (formats.number, 1.234e9 + 0.5, "1.234e+09"),
        (formats.number, -0.5, f"{MINUS}0.50000"),
        (formats.number, 1.19e-7, f"1.19e{MINUS}07"),
        (formats.number, "gram", "gram"),
        (formats.setting, -1.5, f"{MINUS}1.5"),
        (formats.setting, 2.0, "2"),
        (formats.setting, 1111, "1111"),
        (formats.setting, None, DASH),
        (formats.setting, "et-asgd", "et-asgd"),
        (formats.setting, ["python", "a"], "['python', 'a']"),
        (formats.p_value, None, DASH),
        (formats.p_value, 0.0312, "0.031"),
        (formats.p_value, 3e-5, "3.0e-05"),
        (formats.p_value, 0, "< 1e-15"),
        (formats.ranked, {"a": 58.38257, "b": 58.4, "c": 58.40113}, "a 58.383, b 58.4, c 58.401"),
        (formats.ranked, {"a": 2.0, "b": 2.0, "c": 1.0}, "c 1, a = b 2"),
    ],
)
def test_values_are_written_one_way(
    write: Callable[[object], str], value: object, text: str
) -> None:
    assert write(value) == text


@pytest.mark.parametrize(
    ("metric", "mean", "deviation", "text"),
    [
        ("test_perplexity", 57.084, 0.094, "57.08 ± 0.09"),
        ("test_perplexity", 117.84, 0.094, "117.84 ± 0.09"),
        ("press_rank", 6.5, 0.71, "6.50 ± 0.71"),
        ("press_rank", 402.0, 0.0, "402 ± 0"),
        ("press_rank", 9981.4, 2.1, "9,981 ± 2"),
        ("seconds_per_epoch", 0.2703, 0.1583, "0.27 ± 0.16"),
        ("seconds_per_epoch", 100.0, 0.4, "100.0 ± 0.4"),
        ("effective_rank_1e-3", 53.0, 0.447, "53.0 ± 0.4"),
        ("sigma_max", 123456.7, 0.5, "123,456.7 ± 0.5"),
    ],
)
def test_spread_limits_digits(metric: str, mean: float, deviation: float, text: str) -> None:
    assert formats.spread(metric, mean, deviation) == text


def test_published_values_keep_their_digits() -> None:
    assert formats.printed("train_perplexity", 42.45, 1.03) == "42.45 ± 1.03"
    assert formats.printed("press_rank", 8904.0, 57.0) == "8,904 ± 57"


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (-0.0004, 0.11, "+0.00"),
        (-1.26, 0.11, f"{MINUS}1.26"),
        (0.12345, 0.0123, "+0.123"),
        (1234.5, 250.0, "+1,234"),
        (0.5, 0.0, "+0.50"),
    ],
)
def test_interval_limits_decimals(value: float, half: float, text: str) -> None:
    assert formats.to_width(value, -half, half, signed=True) == text


def test_only_differing_values_are_counted() -> None:
    assert formats.with_counts({"2.13.0": 72}) == "2.13.0"
    many = formats.with_counts({f"host {i}": 1 for i in range(40)})
    assert many.startswith("host 0 (1), host 1 (1)") and many.endswith("host 11 (1) and 28 more")
