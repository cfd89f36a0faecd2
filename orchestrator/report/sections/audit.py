"""Papers' claims with verdicts, and an account of every printed number."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from orchestrator.analysis import FATES, AuditNumbers
from orchestrator.report.columns import Column, Table
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.words import counted
from search_spaces.published import TITLES


def audit_section(numbers: AuditNumbers) -> Section:
    """Return the section of an Audit request."""
    checks = numbers.checks
    failing = checks[checks["verdict"].isin(["differs", "explained"])].sort_values("verdict")
    tables = [
        _claims(failing, "those that do not agree"),
        Table(
            caption="Every printed number, counted once",
            frame=numbers.account,
            shown=[
                ("table", Column("table", TITLES.__getitem__)),
                "numbers",
                *FATES,
                ("columns_nothing_determines", Column("columns that nothing determines", _names)),
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


def _findings(numbers: AuditNumbers) -> Iterator[str]:
    checks, account = numbers.checks, numbers.account
    count = checks["verdict"].value_counts().reindex(FATES, fill_value=0)
    yield (
        f"Of {len(checks)} checks, {count['agrees']} agree, {count['compatible']} are compatible "
        f"(which includes bounds that a wrong number could pass as well), for {count['differs']} "
        f"the number does not come out, for {count['explained']} it does not and need not, and "
        f"{count['open']} could not be made here."
    )
    for rule, part in checks[checks["verdict"] == "differs"].groupby("rule", sort=False):
        claims = (
            f"{check.source}, {check.what}: printed {check.printed}, recomputed {check.recomputed}"
            for check in part.itertuples()
        )
        yield f"{'; '.join(claims)} (rule: {rule})."
    for reason, part in checks[checks["verdict"] == "open"].groupby("recomputed", sort=False):
        yield f"{counted(len(part), 'number')} of SM Table 13 could not be checked here: {reason}."
    fates = account[list(FATES)].sum()
    counts = ", ".join(f"{fate} {numbers}" for fate, numbers in fates.items() if numbers)
    yield (
        f"The {len(account)} published tables print {fates.sum()} numbers: {counts}. These are "
        "numbers and not checks: a check may involve several, on both sides of a difference, and a "
        "statement of the text involves none of them."
    )


def _claims(checks: pd.DataFrame, which: str, *, folded: bool = False) -> Table:
    return Table(
        caption=f"{counted(len(checks), 'printed statement')}, {which}",
        frame=checks,
        shown=("verdict", "source", "what", "printed", "recomputed", "rule"),
        folded=folded,
    )


def _names(columns: str) -> str:
    return columns.replace(" ", ", ").replace("_", " ")
