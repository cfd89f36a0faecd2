"""One check of a proof: the question, its answer, and the line and figures that it leaves. Needs no
torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Result = Literal["PASS", "FAIL", "SKIP", "INFO"]
"""SKIP: could not be tried. INFO: a figure or a fact without a limit."""


class NotTriedError(Exception):
    """A check cannot be made here; the text says why."""


@dataclass(frozen=True)
class Question:
    """A check that is still to be made."""

    name: str
    ask: Callable[[], float | str]
    """Measure, and return a number, or a text if nothing raised an error."""
    limit: float | None = None
    """Most that passes; None: a number is only reported."""
    unit: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """More figures for the file, such as a prediction."""


@dataclass(frozen=True)
class Check:
    """The answer to a question."""

    name: str
    result: Result
    text: str
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """Its line on the terminal."""
        return f"{self.result}  {self.name}: {self.text}"


def answer(question: Question) -> Check:
    """Make the check. NotTriedError skips it, any other error fails it."""
    try:
        return compared(question, question.ask())
    except NotTriedError as reason:
        return Check(question.name, "SKIP", f"not tried: {reason}")
    except Exception as error:
        return Check(
            question.name,
            "FAIL",
            f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}",
        )


def compared(question: Question, value: float | str) -> Check:
    """Compare the value with the limit of its question. A NaN does not pass."""
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
