"""Metrics by name: values that can be recorded and read back into a table of results."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from trainables.config import COLUMNS, KINDS, USER, Frozen
from trainables.errors import first_problem

Metric = int | float | str | bool
NUMBERS = re.compile(
    r"""(train|valid|test|entropy|shares)_perplexity | generalisation_gap
    | press_(rank(_float(32|64))?|tolerance|eps)
    | (press|entropy)_rank_(peak(_epoch)?|kept|last) | ranked_epochs
    | (entropy|stable|language|true)_rank | kl_(at_)?rank_.* | rank_(rows|columns)
    | sigma_(max|middle|min) | different_contexts | kept_epoch | epochs | parameters
    | (wall_)?seconds | seconds_per_epoch | tokens_per_second | peak_memory_mib
    | (train|validation|test)_error_percent | chosen_learning_rate | excess_cross_entropy
    | target_entropy | modes_matched | iterations | passes | met_rule | (zero|singular)_share
    | (mean_)?vanishing_.* | effective_rank_.* | log10_condition(_nonzero|_excess)?
    | first_half_r2 | input_spread | noisy_.* | round_trip\ .* | similarity.*
    | gradient_(lost_share|angle_degrees|norm_lost(_null)?|contexts) | centred_.*
    | (word_pairs|bent|turned)\ .*""",
    re.VERBOSE,
)
SETTINGS = {key for kind in KINDS for key in kind.model_fields}
TOP_K = re.compile(r"top_k(-[0-9a-f]{8})? \S+ [0-9]{1,18}")
"""Names of top_k metrics: "top_k", a tag of the contexts file (optional), group and number."""


class WordsAfter(Frozen):
    """Predictions after a context: the JSON text of a top_k metric (see `top_k_metrics`)."""

    context: str = ""
    next: str
    next_in_text: str | None = None
    probability: float
    rank: Annotated[int, Field(ge=1, lt=2**63)]
    top: tuple[tuple[str, float], ...]


def check_metrics(metrics: Any, *, measurement: str = "") -> Any:
    """Return the metrics. Raises ValueError unless they can be recorded.

    Values must be finite 64-bit numbers, text or booleans. Metrics used in arithmetic (`NUMBERS`)
    must be numbers, and top_k must be `WordsAfter`. A metric may not have the name of another
    column of the results. Except in the `measurement` of a user's trial, config keys of built-in
    kinds are such columns.
    """
    if not isinstance(metrics, dict):
        raise ValueError("metrics must be an object of names and values")
    for name, value in metrics.items():
        is_setting = measurement != USER and name.partition(".")[0] in SETTINGS
        if name in COLUMNS or is_setting:
            raise ValueError(f"the metric name {name} belongs to another column of the results")
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError(
                    f"the metric {name} must be finite, got {value}. "
                    f"A diverged trial has the state diverged instead"
                )
        elif isinstance(value, str | bool):
            if NUMBERS.fullmatch(name):
                raise ValueError(f"the metric {name} must be a number, got {value!r}")
        elif not isinstance(value, int):
            raise ValueError(f"the metric {name} must be a number or text")
        elif not -(2**63) <= value < 2**63:
            raise ValueError(f"the metric {name} is an integer of more than 64 bits")
        if name.startswith(("top_k ", "top_k-")):
            _check_words(name, value)
    return metrics


Metrics = Annotated[dict[str, Metric], AfterValidator(check_metrics)]


def _check_words(name: str, value: Metric) -> None:
    if not isinstance(value, str) or not TOP_K.fullmatch(name):
        raise ValueError(
            f"the metric {name} needs a group and a number in its name, and JSON text as its value"
        )
    try:
        WordsAfter.model_validate_json(value, strict=True)
    except ValidationError as error:
        raise ValueError(
            f"the metric {name} must be a context and its predictions ({first_problem(error)})"
        ) from error
