"""Base classes of all configs, and the ranges of their numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from trainables.config.keys import NO_SETTINGS, dotted_keys, replaced
from trainables.errors import UserError, did_you_mean

Seed = Annotated[int, Field(ge=0, lt=2**63)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
TwoOrMore = Annotated[int, Field(ge=2)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_EVALUATION: Mapping[str, Any] = {"epoch_rank_contexts": None}
ADDED_LATER: Mapping[str, Mapping[str, Any]] = {
    "language_model": {
        "model": {"start": "published", "head_rank": None},
        "training": {"optimizer": "sgd", "warm_up_tokens": 0},
        "evaluation": _EVALUATION,
    },
    "true_rank": {"evaluation": _EVALUATION},
    "layer_jacobian": {"depth": 1},
}
"""Default values of settings that older stored trials do not have, by kind and, if they have one,
section. A trial's identity omits settings with these values, so that older trials keep their ids.
"""


def identity(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a config's JSON data that identifies the trial."""
    return _without(_defaults(content), content)


def completed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config's complete JSON data: its `identity` and the values of `ADDED_LATER`."""
    defaults = _defaults(content)
    sections = {
        name: {**values, **content[name]}
        for name, values in defaults.items()
        if isinstance(values, Mapping)
    }
    return {**defaults, **content, **sections}


def _without(defaults: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without(default, value) if isinstance(default, Mapping) else value
        for name, value in content.items()
        if (default := defaults.get(name, ...)) != value
    }


def canonical_json(content: Any) -> str:
    """Return JSON with sorted keys and without white space."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def json_sha256(content: Any) -> str:
    """Return the SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def _defaults(content: Mapping[str, Any]) -> Mapping[str, Any]:
    defaults = ADDED_LATER.get(content.get("kind", "language_model"), {})
    return {
        name: value
        for name, value in defaults.items()
        if name in content or not isinstance(value, Mapping)
    }


class Frozen(BaseModel):
    """Base of all configs: immutable, no unknown keys, no NaN or infinity, no negative zero."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """Return a copy with fields replaced and, unlike in pydantic, validated."""
        return type(self).model_validate({**dict(self), **(update or {})})

    @field_validator("*", mode="after")
    @classmethod
    def _normalise_zero(cls, value: Any) -> Any:
        return 0.0 if isinstance(value, float) and value == 0.0 else value


class Identified(Frozen):
    """A trial's config. Its content determines the trial's id."""

    seed: Seed

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with other values at dotted keys, such as {"training.learning_rate": 10.0}.

        Raises UserError for an unknown key or invalid value.
        """
        content = self.model_dump(mode="json")
        keys = set(dotted_keys(content)) - set(NO_SETTINGS)
        for key in values:
            if key not in keys:
                raise UserError(
                    f"a config of kind {content['kind']} has no key {key!r}: "
                    f"{did_you_mean(key, keys)}--dry-run --format json prints all keys"
                )
        return replaced(content, values, type(self).model_validate, "a changed value")

    @property
    def trial_id(self) -> str:
        """SHA-256 of the `identity`'s canonical JSON, in hexadecimal."""
        return json_sha256(identity(self.model_dump(mode="json")))
