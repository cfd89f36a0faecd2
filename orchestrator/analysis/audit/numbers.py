"""Verdict on every claim, and on every number that a paper prints."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from orchestrator.analysis.audit import rules
from orchestrator.analysis.audit.claims import Cell, claims, printed_numbers

FATES = ("differs", "open", "agrees", "compatible", "explained", "used", "nothing")
"""Verdicts on a printed number. A number gets the first that applies.

- differs: recomputing gives another value.
- open: data to recompute it are missing.
- agrees: recomputing gives the printed value.
- compatible: other printed numbers allow it, but also some wrong values.
- explained: recomputing gives another value, for a known reason.
- used: other numbers were computed from it.
- nothing: no other number determines it.
"""


@dataclass(frozen=True)
class AuditNumbers:
    """Each claim with its verdict, and the number of verdicts of each kind by table (`account`)."""

    checks: pd.DataFrame
    account: pd.DataFrame


def audit_numbers(frame: pd.DataFrame) -> AuditNumbers:
    """Return a verdict on each claim and on each printed number.

    `frame` has the results of the trials that count word pairs.
    """
    fates = dict.fromkeys(printed_numbers().values(), "nothing")
    checks = []
    for claim in claims(frame):
        row = claim.row
        rule = getattr(rules, row["rule"])
        words = " ".join(rule.__doc__.split()).rstrip(".").format(**row)
        value, holds = rule(claim)
        verdict = "open" if holds is None else row["if_true" if holds else "if_false"]
        for cells, fate in ((claim.cells, verdict), (claim.inputs, "used")):
            for cell in cells:
                fates[cell] = min(fates[cell], fate, key=FATES.index)
        checks.append(
            {
                "source": row["source"],
                "what": row["what"],
                "printed": claim.printed,
                "recomputed": value,
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
    columns = cells[cells["fate"] == "nothing"].groupby("table")["column"].unique()
    account["columns_nothing_determines"] = columns.str.join(" ")
    return account.fillna("").reset_index()
