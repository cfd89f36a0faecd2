"""SM Tables 15 and 16: Press ranks of a matrix of rank 10 under noise, by the quarter-circle law with one tolerance.

The effective ranks are the same at every c, so that they could only be held against themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import Check, Place
from orchestrator.analysis.audit.printed_noise import SIZE, TABLE, fit_printed
from search_spaces.published import rows


def checks() -> Iterator[Check]:
    """A line for each printed Press rank."""
    fit = fit_printed()
    for line, row in enumerate(rows(TABLE)):
        variance = float(row["noise_c"])
        yield Check(
            source=f"SM Tables 15 and 16, c = {row['noise_c']}",
            what="Press rank",
            printed=row["press_rank"],
            recomputed=f"{fit.predicted[variance]:.1f}",
            rule=f"quarter-circle law of noise of variance c on {SIZE:,} x {SIZE:,}, rank 10, with the one "
            f"tolerance ({fit.tolerance:.3g}) that fits the most of the printed ranks: within "
            f"{fit.spread(variance):g}, as far as draws differ from the law",
            verdict="compatible" if fit.fits(variance) else "differs",
            covers=(Place(TABLE, line, "press_rank"),),
            uses=(Place(TABLE, line, "noise_c"),),
        )
