"""Every claim with its verdict, and every printed number with the verdicts on it: none is left out
silently."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from orchestrator.analysis.audit import rules
from orchestrator.analysis.audit.claims import Cell, claims, printed_numbers

FATES = ("differs", "open", "agrees", "compatible", "explained", "used", "nothing")
"""Verdicts, the first that applies to a number first. agrees: the printed value comes out.
compatible: other printed values allow it, and would allow a wrong one. differs: it does not come
out. explained: it does not and, for a reason that the rule says, need not. open: something is
missing here. used: others were computed from the number. nothing: nothing else determines it."""


@dataclass(frozen=True)
class AuditNumbers:
    """Data frames: every claim with its verdict, and for each published table how many of its
    numbers have each fate."""

    checks: pd.DataFrame
    account: pd.DataFrame


def audit_numbers(frame: pd.DataFrame) -> AuditNumbers:
    """Check every claim; `frame` has the trials that counted word pairs."""
    fates = dict.fromkeys(printed_numbers().values(), "nothing")
    checks = []
    for claim in claims(frame):
        row = claim.row
        rule = getattr(rules, row["rule"])
        words = " ".join(rule.__doc__.split()).format(**row)
        recomputed, comes_out = rule(claim)
        verdict = "open" if comes_out is None else row["if_true" if comes_out else "if_false"]
        for cells, fate in ((claim.cells, verdict), (claim.inputs, "used")):
            for cell in cells:
                fates[cell] = min(fates[cell], fate, key=FATES.index)
        checks.append(
            {
                "source": row["source"],
                "what": row["what"],
                "printed": claim.printed,
                "recomputed": recomputed,
                "rule": f"{words}; {row['note']}" if row["note"] else words,
                "verdict": verdict,
                "cells": " ".join(
                    f"{cell.table}:{cell.line}:{cell.column}" for cell in claim.cells
                ),
            }
        )
    return AuditNumbers(pd.DataFrame(checks), _account(fates))


def _account(fates: dict[Cell, str]) -> pd.DataFrame:
    cells = pd.DataFrame(list(fates))
    cells["fate"] = pd.Categorical(list(fates.values()), FATES)
    cells["count"] = cells["numbers"].str.len()
    account = cells.pivot_table("count", "table", "fate", "sum", observed=False)
    account.insert(0, "numbers", account.sum(axis=1))
    nothing = cells[cells["fate"] == "nothing"].groupby("table")["column"].unique()
    account["columns_nothing_determines"] = nothing.str.join(" ")
    return account.fillna("").reset_index()
