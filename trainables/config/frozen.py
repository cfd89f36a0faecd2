"""What all configs have in common, and the ranges that their numbers come in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

Seed = Annotated[int, Field(ge=0, lt=2**63)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
NonNegative = Annotated[float, Field(ge=0.0)]


class Frozen(BaseModel):
    """Base of all configs: immutable, no unknown keys, no NaN or infinity, one spelling of zero."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    ADDED_LATER: ClassVar[frozenset[str]] = frozenset()
    """Fields that are newer than stored trials: at its default such a field is no part of the identity, so that trials
    from before it keep theirs."""

    def identity(self) -> dict[str, Any]:
        """The content that tells this config from all others, as JSON data."""
        content = self.model_dump(mode="json")
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name in self.ADDED_LATER and value == field.default:
                del content[name]
            elif isinstance(value, Frozen):
                content[name] = value.identity()
        return content

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """A copy with fields replaced, validated like any other config (pydantic's own would take anything)."""
        return type(self).model_validate({**dict(self), **(update or {})})

    @field_validator("*", mode="after")
    @classmethod
    def _one_zero(cls, value: Any) -> Any:
        return 0.0 if isinstance(value, float) and value == 0.0 else value


class Identified(Frozen):
    """A trial's config: its content is its identity."""

    seed: Seed

    def canonical_json(self) -> str:
        """The identity as JSON, keys sorted, no white space."""
        return json.dumps(self.identity(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def trial_id(self) -> str:
        """SHA-256 of the canonical JSON, as 64 hexadecimal digits."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()
