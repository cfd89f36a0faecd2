"""The papers' claims with their verdicts, and an account of every printed number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.analysis import FATES, AuditNumbers
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import TextTable, csv_lines, record_table
from orchestrator.words import counted
from search_spaces.published import TITLES

if TYPE_CHECKING:
    import pandas as pd


def audit_section(numbers: AuditNumbers) -> Section:
    """Return the tables and files of an Audit request."""
    checks, account = numbers.checks, numbers.account
    failing = checks[checks["verdict"].isin(["differs", "explained"])]
    findings = tuple(_findings(checks, account))
    tables = []
    for source, part in checks.groupby(checks["source"].str.partition(",")[0]):
        verdicts = part["verdict"].value_counts()
        counts = ", ".join(f"{verdict} {count}" for verdict, count in verdicts.items())
        tables.append(replace(_check_table(part, f"{source}: {counts}"), folded=True))
    nothing = account["columns_nothing_determines"].str.replace(" ", ", ").str.replace("_", " ")
    titled = account.assign(
        table=account["table"].map(TITLES), columns_nothing_determines=nothing
    ).to_dict("records")
    return Section(
        kind="recomputed",
        heading="Printed and recomputed",
        findings=findings,
        tables=(
            _check_table(failing, "those that do not agree"),
            record_table("Every printed number, counted once", titled),
            *tables,
        ),
        terminal=(
            _check_table(failing, "those that do not agree; the report has them all"),
            "\n".join(findings),
        ),
        method=prose("method_audit.txt"),
        files={
            "recomputed.csv": csv_lines(checks.to_dict("records")),
            "account.csv": csv_lines(account.to_dict("records")),
        },
    )


def _findings(checks: pd.DataFrame, account: pd.DataFrame) -> Iterator[str]:
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


def _check_table(checks: pd.DataFrame, which: str) -> TextTable:
    columns = ("verdict", "source", "what", "printed", "recomputed", "rule")
    caption = f"{counted(len(checks), 'printed statement')}, {which}"
    return record_table(caption, checks.to_dict("records"), columns)
