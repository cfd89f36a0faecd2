"""Checks of printed numbers: which agree, which differ, and which have no check."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from orchestrator.analysis import FATES, AuditNumbers
from orchestrator.report.columns import Column, Table
from orchestrator.report.findings import Finding, describe
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.words import counted
from search_spaces.published import TITLES


def audit_section(numbers: AuditNumbers) -> Section:
    """Return the section of an Audit request."""
    checks = numbers.checks
    failing = checks[checks["verdict"].isin(["differs", "explained"])].sort_values("verdict")
    tables = [
        _claims(failing, "all that do not agree with our value"),
        Table(
            caption="Every printed number, counted once",
            frame=numbers.account,
            columns=[
                ("table", Column("table", TITLES.__getitem__)),
                "numbers",
                *FATES,
                ("columns_nothing_determines", Column("columns without any rule", _names)),
            ],
            file="account.csv",
        ),
        Table(frame=checks, file="recomputed.csv"),
    ]
    for source, part in checks.groupby(checks["source"].str.partition(",")[0]):
        counts = part["verdict"].value_counts().items()
        verdicts = ", ".join(f"{verdict} {count}" for verdict, count in counts)
        tables.append(_claims(part, f"{source}: {verdicts}", folded=True))
    return Section(
        kind="recomputed",
        heading="Printed and recomputed",
        findings=tuple(_findings(numbers)),
        tables=tuple(tables),
        method=prose("method_audit.txt"),
    )


def _findings(numbers: AuditNumbers) -> Iterator[Finding]:
    checks, account = numbers.checks, numbers.account
    counts = checks["verdict"].value_counts().reindex(FATES, fill_value=0).to_dict()
    yield describe("checked_claims", checks=len(checks), counts=counts)
    for rule, part in checks[checks["verdict"] == "differs"].groupby("rule", sort=False):
        claims = part[["source", "what", "printed", "recomputed"]].to_dict("records")
        yield describe("differing_claims", rule=rule, claims=claims)
    for reason, part in checks[checks["verdict"] == "open"].groupby("recomputed", sort=False):
        yield describe("open_claims", reason=reason, claims=len(part))
    fates = account[list(FATES)].sum()
    yield describe(
        "printed_numbers",
        tables=len(account),
        numbers=int(fates.sum()),
        fates=list(fates[fates > 0].items()),
    )


def _claims(checks: pd.DataFrame, which: str, *, folded: bool = False) -> Table:
    return Table(
        caption=f"{counted(len(checks), 'printed statement')}, {which}",
        frame=checks,
        columns=("verdict", "source", "what", "printed", "recomputed", "rule"),
        folded=folded,
    )


def _names(columns: str) -> str:
    return columns.replace(" ", ", ").replace("_", " ")
