"""Questions and checks of a proof. Needs no torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Result = Literal["PASS", "FAIL", "SKIP", "INFO"]
"""SKIP: the check could not run. INFO: a value without a limit."""


class NotTriedError(Exception):
    """A check cannot run on this machine; the text gives the reason."""


@dataclass(frozen=True)
class Question:
    """A check that has not run yet."""

    name: str
    ask: Callable[[], float | str]
    """Returns a number to compare with `limit`, or a text, which always passes."""
    limit: float | None = None
    """Largest number that passes; None: the number is only reported."""
    unit: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """Result of a `Question`, after it was asked."""

    name: str
    result: Result
    text: str
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """Return the printed line."""
        return f"{self.result}  {self.name}: {self.text}"


def answer(question: Question) -> Check:
    """Make the check. NotTriedError skips it; any other error fails it."""
    try:
        return compare(question, question.ask())
    except NotTriedError as reason:
        return Check(question.name, "SKIP", f"not tried: {reason}")
    except Exception as error:
        return Check(
            question.name,
            "FAIL",
            f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}",
        )


def compare(question: Question, value: float | str) -> Check:
    """Compare a value with the limit. NaN fails."""
    if isinstance(value, str):
        return Check(question.name, "PASS", value, question.figures)
    number = value if math.isfinite(value) else str(value)
    figures = {"value": number, "limit": question.limit, "unit": question.unit, **question.figures}
    text = f"{value:.3g}{question.unit}"
    if question.limit is None:
        return Check(question.name, "INFO", text, figures)
    result: Result = "PASS" if value <= question.limit else "FAIL"
    return Check(
        question.name, result, f"{text}, at most {question.limit:.3g}{question.unit}", figures
    )
