"""What all configs have in common, and the ranges that their numbers come in."""

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
NonNegative = Annotated[float, Field(ge=0.0)]
_EVALUATION: Mapping[str, Any] = {"epoch_rank_contexts": None}
ADDED_LATER: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "language_model": {
        "model": {"start": "published", "head_rank": None},
        "training": {"optimizer": "sgd", "warm_up_tokens": 0},
        "evaluation": _EVALUATION,
    },
    "true_rank": {"evaluation": _EVALUATION},
}
"""By kind and section: settings that are newer than stored trials, with the value that those were
trained with. At that value, whatever the default, a setting is no part of the identity, so that
trials from before it keep theirs."""


def identity(content: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a config's JSON data that its trial is identified by, and that is stored."""
    result = dict(content)
    for section, added in _added(content).items():
        values = content[section].items()
        result[section] = {name: value for name, value in values if added.get(name, ...) != value}
    return result


def completed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The whole config that was stored as its identity."""
    sections = _added(content).items()
    return {**content, **{section: {**added, **content[section]} for section, added in sections}}


def _added(content: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    added = ADDED_LATER.get(content.get("kind", "language_model"), {})
    return {section: values for section, values in added.items() if section in content}


class Frozen(BaseModel):
    """Base of all configs: immutable, no unknown keys, no NaN or infinity, one spelling of zero."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """A copy with fields replaced, validated like any other config (pydantic's own would take
        anything)."""
        return type(self).model_validate({**dict(self), **(update or {})})

    @field_validator("*", mode="after")
    @classmethod
    def _one_zero(cls, value: Any) -> Any:
        return 0.0 if isinstance(value, float) and value == 0.0 else value


class Identified(Frozen):
    """A trial's config: its content is its identity."""

    seed: Seed

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """A copy with other values at these dotted keys, such as {"training.learning_rate": 10.0}.

        Raises UserError for a key that this config does not have, and for a value that it cannot
        have."""
        content = self.model_dump(mode="json")
        keys = set(dotted_keys(content)) - set(NO_SETTINGS)
        for key in values:
            if key not in keys:
                raise UserError(
                    f"a config of the kind {content['kind']} has no key {key!r}: "
                    f"{did_you_mean(key, keys)}"
                    "Keys are those of the config, as --dry-run --format json prints it"
                )
        return replaced(content, values, type(self).model_validate, "with_values")

    def canonical_json(self) -> str:
        """The identity as JSON, keys sorted, no white space."""
        return json.dumps(
            identity(self.model_dump(mode="json")),
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
        )

    @property
    def trial_id(self) -> str:
        """SHA-256 of the canonical JSON, as 64 hexadecimal digits."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()
