"""Are the final settings of SM Tables 7 to 9 among the values that were tried?"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import Check, Place, look
from search_spaces.published import rows

TABLE = "sm_table7_8_9_fair_capacity_tuning"
SIDES = {
    "final_softmax_double_dagger": "Softmax\N{DOUBLE DAGGER}",
    "final_mos_dagger": "MoS\N{DAGGER}",
}


def checks() -> Iterator[Check]:
    """One for each final setting."""
    for line, row in enumerate(rows(TABLE)):
        for column, side in SIDES.items():
            if row[column]:
                yield _tried(line, column, side)


def _tried(line: int, column: str, side: str) -> Check:
    row = rows(TABLE)[line]
    name, printed = row["hyperparameter"], row[column]
    grids = [(i, other) for i, other in enumerate(rows(TABLE)) if other["hyperparameter"] == name]
    found = [other["stage"] for _, other in grids if float(printed) in map(float, other["values"].split())]
    uses = tuple(Place(TABLE, i, "values") for i, _ in grids)
    rule = "among the values tried in stage 1 or 2, or SM Table 6's where stage 1 left it at that"
    outcome = f"tried in stage {' and '.join(found)}"
    if not found and all(other["stage"] != "1" for _, other in grids):
        default = look("sm_table6_hyperparameters", "mos_moc_ptb", hyperparameter=name)
        uses += (default.place,)
        if default.value == float(printed):
            found, outcome = ["default"], "SM Table 6's value"
    return Check(
        source=f"SM Tables 7 to 9, {side}",
        what=f"final {name.replace('_', ' ')}",
        printed=printed,
        recomputed=outcome if found else "not among the values tried",
        rule=rule,
        verdict="compatible" if found else "differs",
        covers=(Place(TABLE, line, column),),
        uses=uses,
    )
