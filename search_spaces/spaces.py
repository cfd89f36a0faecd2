"""Spaces of trials: finite choices for the fields of one config.

    Study(trials=Grid(Mlp, width=(16, 64), **{"optimizer.lr": (0.1, 0.01)}), ...)
    Study(trials=Search(Mlp, When("optimizer", "sgd", momentum=(0.0, 0.9)),
                        optimizer=("adam", "sgd"), lr=log_range(1e-4, 0.1, 10), budget=30), ...)

The first argument is a subclass of `Trainable` or a config, whose other fields stay as they are.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from search_spaces.tuning import (
    Cell,
    Dimension,
    Method,
    Space,
    Tuning,
    as_cell,
    cells,
    choices,
)
from trainables.config import KINDS, AnyConfig, Goal, Trainable, dotted_keys, value_at
from trainables.errors import UserError, did_you_mean, first_problem

DIGITS = 6
"""Significant digits of a range's values, so that they are equal on every machine."""


class Trials:
    """Function without arguments that returns different configs; `+` joins two of them."""

    def __init__(self, configs: Callable[[], Iterable[AnyConfig]]) -> None:
        self._configs = configs

    def __call__(self) -> list[Any]:
        """Return the configs. Raises UserError for an invalid value."""
        return list({config.trial_id: config for config in self._configs()}.values())

    def __add__(self, other: Callable[[], Iterable[AnyConfig]]) -> Trials:
        return Trials(lambda: (*self(), *other()))


class When:
    """Fields, or further conditions, that vary only in trials in which `key` has this value."""

    def __init__(self, key: str, value: Any, /, *parts: When, **fields: Sequence[Any]) -> None:
        self.condition, self.parts, self.fields = (key, value), parts, fields


class Grid(Trials):
    """Grid of all combinations of the fields' values, the last field changing fastest."""

    def __init__(self, base: Any, /, *parts: When, **fields: Sequence[Any]) -> None:
        config, space = _space(base, parts, fields)
        super().__init__(lambda: (config.with_values(choices(space, c)) for c in cells(space)))


class Zip(Trials):
    """The fields' first values, then their second values, and so on."""

    def __init__(self, base: Any, /, **fields: Sequence[Any]) -> None:
        config, space = _space(base, (), fields)
        lengths = {one.key: len(one.values) for one in space}
        if len({*lengths.values()}) > 1:
            texts = (f"{key} has {length}" for key, length in lengths.items())
            raise UserError(f"Zip: {', '.join(texts)} values. Give all fields equally many.")
        rows = zip(*(one.values for one in space), strict=True)
        values = [dict(zip(lengths, row, strict=True)) for row in rows]
        super().__init__(lambda: map(config.with_values, values))


class Random(Trials):
    """`n` different trials of a grid, or all if it has fewer. A larger `n` adds trials.

    A trial draws each field's value, conditions' fields first, by a hash of `seed`.
    """

    def __init__(
        self, n: int, base: Any, /, *parts: When, seed: int = 0, **fields: Sequence[Any]
    ) -> None:
        _require_count("Random", "n", n)
        config, space = _space(base, parts, fields)
        super().__init__(
            lambda: (config.with_values(choices(space, c)) for c in _drawn(space, n, seed))
        )


class Search(Trials):
    """A search of a grid for the best trial, by the study's metric.

    The base comes first, then `budget` trials (fewer at scales smoke, quick and small), then the
    best one with the study's number of new seeds. Poor trials stop early if they have a field
    `epochs` and report the metric by epoch.
    """

    def __init__(
        self,
        base: Any,
        /,
        *parts: When,
        budget: int = 30,
        method: Method = "tpe",
        **fields: Sequence[Any],
    ) -> None:
        _require_count("Search", "budget", budget)
        if method not in ("tpe", "random"):
            raise UserError(f"Search: method {method!r} is unknown. Choose tpe or random.")
        self._base, self._space = _space(base, parts, fields)
        self._budget, self._method = budget, method
        super().__init__(lambda: [self._base])

    @property
    def side(self) -> str:
        """First word of the trials' names: the name of the class, or "command"."""
        config = self._base
        return config.trainable if isinstance(config, Trainable) else config.kind

    def tuning(self, goal: Goal, seed_count: int) -> Tuning:
        """Return this search for a metric, with new seeds for the best trial."""
        first = self._base.seed + 1
        return Tuning(
            sides={self.side: lambda _: self._base},
            stage1=(),
            stage2=self._space,
            seeds=tuple(range(first, first + seed_count)),
            goal=goal,
            method=self._method,
            budget=self._budget,
        )


def log_range(low: float, high: float, n: int) -> tuple[float, ...]:
    """Return `n` values from `low` to `high` with equal ratios; integers between two integers."""
    if not low > 0:
        raise UserError(f"log_range: starts above 0; got {low}. Use linear_range.")
    ratio = high / low
    return _range("log_range", low, high, n, lambda share: low * ratio**share)


def linear_range(low: float, high: float, n: int) -> tuple[float, ...]:
    """Return `n` values from `low` to `high` in equal steps; integers between two integers."""
    return _range("linear_range", low, high, n, lambda share: low + (high - low) * share)


def _range(
    name: str, low: float, high: float, n: int, value_at_share: Callable[[float], float]
) -> tuple[float, ...]:
    _require_count(name, "n", n, least=2)
    if not low < high < math.inf:
        raise UserError(f"{name}: needs low < high; got {low} and {high}. Correct them.")
    inner = [value_at_share(step / (n - 1)) for step in range(1, n - 1)]
    if isinstance(low, int) and isinstance(high, int):
        return tuple(dict.fromkeys((low, *map(round, inner), high)))
    return (low, *(float(f"{value:.{DIGITS}g}") for value in inner), high)


def _drawn(space: Space, n: int, seed: int) -> Iterable[Cell]:
    few_cells = list(itertools.islice(cells(space), n + 1))
    if len(few_cells) <= n:
        return few_cells
    drawn: dict[Cell, None] = {}
    for draw in itertools.count():
        indices = (_hashed(seed, draw, axis) % len(one.values) for axis, one in enumerate(space))
        drawn[as_cell(space, tuple(indices))] = None
        if len(drawn) == n:
            break
    return drawn


def _hashed(*numbers: int) -> int:
    return int.from_bytes(hashlib.sha256(repr(numbers).encode()).digest()[:8], "big")


def _require_count(name: str, option: str, count: Any, *, least: int = 1) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise UserError(f"{name}: {option} must be a number of at least {least}; got {count!r}.")


_Field = tuple[str, Sequence[Any], tuple[tuple[str, Any], ...]]


def _fields(
    parts: Iterable[When], fields: Mapping[str, Sequence[Any]], *conditions: tuple[str, Any]
) -> Iterator[_Field]:
    """Yield key, values and conditions of each field, the unconditional ones first."""
    for key, values in fields.items():
        if not isinstance(values, Sequence) or isinstance(values, str) or not values:
            raise UserError(f"{key}: needs one or more values in a tuple; got {values!r}.")
        yield key, values, conditions
    for part in parts:
        yield from _fields(part.parts, part.fields, *conditions, part.condition)


def _space(
    base: Any, parts: Iterable[When], fields: Mapping[str, Sequence[Any]]
) -> tuple[AnyConfig, Space]:
    """Return the base config and its dimensions. Raises UserError for invalid fields."""
    flat = list(_fields(parts, fields))
    config = _config(base, fields)
    content = config.model_dump(mode="json")
    keys = set(dotted_keys(content))
    for number, (key, _, conditions) in enumerate(flat):
        if key not in keys:
            raise UserError(f"{key}: no such field: {did_you_mean(key, keys)}Correct its name.")
        for other, value in conditions:
            earlier = [v for name, values, _ in flat[:number] for v in values if name == other]
            if other in keys:
                earlier.append(value_at(content, other))
            if value not in earlier or any(name == other for name, _, _ in flat[number:]):
                raise UserError(
                    f"When({other!r}, {value!r}): no trial has this value, or a later part varies "
                    f"it. Correct it, or put it last."
                )
    for (key, _, first), (other, _, second) in itertools.combinations(flat, 2):
        pairs = itertools.product(first, second)
        if key == other and not any(a == c and b != d for (a, b), (c, d) in pairs):
            raise UserError(f"{key}: occurs twice. Vary it under conditions that exclude another.")
    return config, tuple(
        Dimension(
            key=key,
            short=key,
            values=tuple(values),
            when=tuple(
                (other, value, other in keys and value_at(content, other) == value)
                for other, value in conditions
            ),
        )
        for key, values, conditions in flat
    )


def _config(base: Any, fields: Mapping[str, Sequence[Any]]) -> AnyConfig:
    if isinstance(base, KINDS):
        return base
    if not isinstance(base, type) or not issubclass(base, Trainable):
        raise UserError(f"a space takes a subclass of Trainable or a config; got {base!r}.")
    required = {
        name: fields[name][0]
        for name, field in base.model_fields.items()
        if field.is_required() and name in fields
    }
    try:
        return base(**required)
    except ValidationError as error:
        raise UserError(f"{base.__name__}: {first_problem(error)}. Correct its fields.") from error
