"""SM Tables 15 and 16: Press ranks of a matrix of rank 10 under noise, by the quarter-circle law with one tolerance.

Only those that say something of the tolerance are checked. The others are 10,000 or nearly and 10, the ranks of a full
and of a noiseless matrix, whatever the tolerance; and the effective ranks are the same at every c, so that they could
only be held against themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.printed_noise import COUNT_SPREAD, SIZE, TABLE, fit_printed
from orchestrator.analysis.recomputed.check import Check, Place
from search_spaces.published import rows


def checks() -> Iterator[Check]:
    """The five informative Press ranks."""
    fit = fit_printed()
    for line, row in enumerate(rows(TABLE)):
        variance = float(row["noise_c"])
        if variance not in fit.informative:
            continue
        yield Check(
            source=f"SM Tables 15 and 16, c = {row['noise_c']}",
            what="Press rank",
            printed=row["press_rank"],
            recomputed=f"{fit.predicted[variance]:.1f}",
            rule=f"quarter-circle law of noise of variance c on {SIZE:,} x {SIZE:,}, rank 10, with the one "
            f"tolerance ({fit.tolerance:.3g}) that fits the printed ranks best, and {len(fit.informative)} of them "
            f"depend on it: within {COUNT_SPREAD:g}, as far as draws differ from the law",
            verdict="compatible" if abs(fit.misses[variance]) <= COUNT_SPREAD else "differs",
            covers=(Place(TABLE, line, "press_rank"),),
            uses=(Place(TABLE, line, "noise_c"),),
        )
