"""Many hostile cases of one kind."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

LONGEST_CASE_S = 60.0
Cases = Callable[[SearchStrategy[Any], Callable[[Any], None]], None]


@contextmanager
def in_time() -> Iterator[None]:
    """Raise TimeoutError where it takes longer than a case may."""

    def stop(_number: int, _frame: object) -> None:
        raise TimeoutError(f"more than {LONGEST_CASE_S:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_CASE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def every_case(rounds: int, request: pytest.FixtureRequest) -> Cases:
    """Try as many cases as the test's mark says; the same few in `make test`, others each time
    under `make chaos`."""

    def try_all(cases: SearchStrategy[Any], check: Callable[[Any], None]) -> None:
        def one(case: Any) -> None:
            with in_time():
                check(case)

        settings(
            max_examples=rounds,
            deadline=None,
            database=None,
            derandomize=not request.config.getoption("--chaos"),
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )(given(cases)(one))()

    return try_all
