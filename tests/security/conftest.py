from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from tests.support.command import sweep
from tests.support.writes import outside, written

LONGEST_CASE_S = 60.0
Cases = Callable[..., None]


@contextmanager
def in_time() -> Iterator[None]:

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
    def try_all(
        cases: SearchStrategy[Any], check: Callable[[Any], None], first: Iterable[Any] = ()
    ) -> None:
        def one(case: Any) -> None:
            with in_time():
                check(case)

        for case in first:
            one(case)
        settings(
            max_examples=rounds,
            deadline=None,
            database=None,
            derandomize=not request.config.getoption("--chaos"),
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )(given(cases)(one))()

    return try_all


def check_answer(
    *arguments: str | Path, allowed: Path | None = None
) -> subprocess.CompletedProcess[str]:
    with written() as paths:
        answer = sweep(*arguments)
    output = answer.stdout + answer.stderr
    assert answer.returncode in (0, 1, 2) and "Traceback" not in output, output
    if answer.returncode == 2:
        assert "error: " in answer.stderr.strip().splitlines()[-1].lower(), output
    assert outside(paths, *([allowed] if allowed else [])) == []
    return answer
