"""The papers' printed numbers recomputed from each other, from configs and from files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.analysis.audit import arithmetic, capacity, ranks, seeds
from orchestrator.analysis.audit.account import AccountLine, account
from orchestrator.analysis.audit.check import Check, Verdict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AuditNumbers", "audit_numbers"]


@dataclass(frozen=True, kw_only=True)
class AuditNumbers:
    """Every check, and an account of every printed number."""

    checks: tuple[Check, ...]
    account: tuple[AccountLine, ...]

    def having(self, verdict: Verdict) -> tuple[Check, ...]:
        """The checks with that verdict."""
        return tuple(check for check in self.checks if check.verdict == verdict)


def audit_numbers(frame: pd.DataFrame) -> AuditNumbers:
    """All that can be recomputed; `frame` has the trials that counted word pairs."""
    checks = (
        *seeds.checks(),
        *arithmetic.checks(),
        *ranks.checks(),
        *capacity.checks(),
        *ranks.correlations(),
        *capacity.tuned_settings(),
        *arithmetic.word_pairs(frame),
    )
    return AuditNumbers(checks=checks, account=account(checks))
