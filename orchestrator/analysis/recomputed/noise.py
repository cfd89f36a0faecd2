"""SM Tables 15 and 16: ranks of a matrix of rank 10 under noise, by the quarter-circle law with one tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.analysis.printed_noise import COUNT_SPREAD, SIZE, TABLE, fit_printed
from orchestrator.analysis.recomputed.check import Check, Place
from search_spaces.published import rows

EPSILONS = ("1e-3", "1e-4", "1e-5")


def checks() -> Iterator[Check]:
    """13 Press ranks, and the effective ranks."""
    fit = fit_printed()
    setting = [Place(TABLE, line, "noise_c") for line, _ in enumerate(rows(TABLE))]
    for line, row in enumerate(rows(TABLE)):
        variance = float(row["noise_c"])
        yield Check(
            source=f"SM Tables 15 and 16, c = {row['noise_c']}",
            what="Press rank",
            printed=row["press_rank"],
            recomputed=f"{fit.predicted[variance]:.1f}",
            rule=f"quarter-circle law of noise of variance c on {SIZE:,} x {SIZE:,}, rank 10, with the one "
            f"tolerance ({fit.tolerance:.3g}) that fits all 13 best: within {COUNT_SPREAD:g}, as far as draws differ "
            "from the law",
            verdict="compatible" if abs(fit.misses[variance]) <= COUNT_SPREAD else "differs",
            covers=(Place(TABLE, line, "press_rank"),),
            uses=(setting[line],),
        )
    for epsilon in EPSILONS:
        yield from _effective(f"effective_rank_{epsilon}", setting)


def _effective(column: str, setting: Sequence[Place]) -> Iterator[Check]:
    """All but the one with the least noise, which the others are held against."""
    lines = {line: row for line, row in enumerate(rows(TABLE)) if row[column]}
    least = min(lines, key=lambda line: float(lines[line]["noise_c"]))
    share = max(float(row["noise_c"]) for row in lines.values()) * (SIZE / fit_printed().sigma_max) ** 2
    for line, row in lines.items():
        if line == least:
            continue
        yield Check(
            source=f"SM Tables 15 and 16, c = {row['noise_c']}",
            what=column.replace("effective_rank_", "effective rank, epsilon "),
            printed=row[column],
            recomputed=lines[least][column],
            rule=f"the same as with the least noise (c = {lines[least]['noise_c']}), since at these c the noise has at "
            f"most {share:.0e} of the sum of squares",
            verdict="compatible" if row[column] == lines[least][column] else "differs",
            covers=(Place(TABLE, line, column),),
            uses=(setting[line], setting[least], Place(TABLE, least, column)),
        )
