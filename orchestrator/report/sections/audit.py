"""What agrees and what does not among the papers' printed numbers, in one table, and an account of
all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from orchestrator.analysis import FATES, AuditNumbers, Check, Verdict
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, text_table
from orchestrator.words import counted

SHOWN: dict[Verdict, str] = {
    "differs": "no",
    "open": "not checked here",
    "explained": "no, and need not",
    "agrees": "yes",
    "compatible": "compatible",
}
FATE_TITLES = {
    "differs": "differ",
    "open": "not checked here",
    "agrees": "agree",
    "compatible": "compatible",
    "explained": "need not follow",
    "used": "used for others",
    "nothing": "nothing to check against",
}
TABLES = {
    "fig2_gss_correlation": "Fig. 2, GSS",
    "ganea_language_modelling": "the talk (Ganea et al. 2019), language modelling",
    "sm_table10_11_averaging": "SM Tables 10 and 11, averaging",
    "sm_table12_mos_dropout": "SM Table 12, dropout of MoS",
    "sm_table13_word_pairs": "SM Table 13, word pairs",
    "sm_section5_press_rank": "SM 5.1, Press rank by contexts",
    "sm_table14_round_trips": "SM Table 14, round trips",
    "sm_table15_16_press_noise": "SM Tables 15 and 16, noise",
    "sm_table1_significance": "SM Table 1, significance",
    "sm_table2_predictions": "SM Table 2, likeliest words",
    "sm_table3_word_similarity": "SM Table 3, word similarity",
    "sm_table4_5_mos_k": "SM Tables 4 and 5, K of MoS",
    "sm_table6_hyperparameters": "SM Table 6, hyper-parameters",
    "sm_table7_8_9_fair_capacity_tuning": "SM Tables 7 to 9, tuning",
    "table1_reproduction": "Table 1, reproduction",
    "table2_seeds": "Table 2, seeds",
    "table3_plif_frozen": "Table 3, frozen PLIF",
    "table4_plif_vs_frozen": "Table 4, learned and frozen PLIF",
    "table5_fair_capacity": "Table 5, equal capacity",
    "table6_rank_metrics": "Table 6, rank metrics",
}
"""What a reader of the papers calls each table."""


def audit_section(numbers: AuditNumbers) -> Section:
    """The tables of an Audit request."""
    ordered = sorted(numbers.checks, key=lambda check: list(SHOWN).index(check.verdict))
    failing = [check for check in ordered if check.verdict in ("differs", "explained")]
    findings = tuple(_findings(numbers))
    return Section(
        kind="recomputed",
        heading="Printed and recomputed",
        findings=findings,
        tables=(
            _check_table(failing, "those that do not agree"),
            _account_table(numbers),
            *(
                replace(_check_table(checks, f"{table}: {_verdicts(checks)}"), folded=True)
                for table, checks in _by_table(ordered).items()
            ),
        ),
        terminal=(
            _check_table(failing, "those that do not agree; the report has them all"),
            "\n".join(findings),
        ),
        method=prose("method_audit.txt"),
        files={
            "recomputed.csv": csv_lines([_record(check) for check in ordered]),
            "account.csv": csv_lines(
                [
                    {
                        "table": line.table,
                        "numbers": line.numbers,
                        **{str(fate): count for fate, count in line.counts.items()},
                        "columns_nothing_determines": " ".join(line.nothing),
                    }
                    for line in numbers.account
                ]
            ),
        },
    )


def _findings(numbers: AuditNumbers) -> Iterator[str]:
    count = {verdict: len(numbers.having(verdict)) for verdict in SHOWN}
    yield (
        f"Of {len(numbers.checks)} checks, {count['agrees']} agree, {count['compatible']} are "
        f"compatible (which "
        f"includes bounds that a wrong number could pass as well), for "
        f"{count['differs']} the number does not come out, for {count['explained']} it does not "
        f"and need not, and "
        f"{count['open']} could not be made here."
    )
    differing, unchecked = numbers.having("differs"), numbers.having("open")
    for rule in dict.fromkeys(check.rule for check in differing):
        lines = (
            f"{check.source}, {check.quantity}: printed {check.printed}, recomputed "
            f"{check.recomputed}"
            for check in differing
            if check.rule == rule
        )
        yield f"{'; '.join(lines)} (rule: {rule})."
    for reason, concerned in Counter(check.rule for check in unchecked).items():
        yield f"{counted(concerned, 'number')} of SM Table 13 could not be checked here: {reason}."
    total = sum(line.numbers for line in numbers.account)
    fates = {fate: sum(line.counts[fate] for line in numbers.account) for fate in FATES}
    counts = ", ".join(f"{count} {FATE_TITLES[fate]}" for fate, count in fates.items() if count)
    yield (
        f"The {len(numbers.account)} published tables print {total} numbers: {counts}. These are "
        f"numbers and not "
        "checks: a check may involve several, on both sides of a difference, and a statement of "
        "the text involves none "
        "of them."
    )


def _by_table(checks: Iterable[Check]) -> dict[str, list[Check]]:
    """By the table of the paper, or the text, that prints a number, in alphabetical order."""
    tables = defaultdict(list)
    for check in checks:
        tables[check.source.partition(",")[0]].append(check)
    return dict(sorted(tables.items()))


def _verdicts(checks: Iterable[Check]) -> str:
    return ", ".join(
        f"{count} {FATE_TITLES[verdict]}"
        for verdict, count in Counter(c.verdict for c in checks).items()
    )


def _check_table(checks: list[Check], which: str) -> TextTable:
    return text_table(
        f"{counted(len(checks), 'printed statement')}, {which}",
        (
            {
                "agrees?": Cell(
                    SHOWN[check.verdict], kind="bad" if check.verdict == "differs" else "name"
                ),
                "source": Cell(check.source),
                "what": Cell(check.quantity),
                "printed": Cell(check.printed),
                "recomputed": Cell(check.recomputed),
                "rule": Cell(check.rule, kind="long"),
            }
            for check in checks
        ),
    )


def _account_table(numbers: AuditNumbers) -> TextTable:
    return text_table(
        "Every printed number, counted once",
        (
            {
                "table": TABLES[line.table],
                "numbers": line.numbers,
                **{FATE_TITLES[fate]: line.counts[fate] for fate in FATES},
                "columns that nothing determines": Cell(
                    ", ".join(line.nothing).replace("_", " "), kind="long"
                ),
            }
            for line in numbers.account
        ),
    )


def _record(check: Check) -> dict[str, str]:
    return {
        "source": check.source,
        "what": check.quantity,
        "printed": check.printed,
        "recomputed": check.recomputed,
        "rule": check.rule,
        "verdict": check.verdict,
        "cells": " ".join(
            f"{place.table}:{place.line + 2}:{place.column}" for place in check.covers
        ),
    }
