"""Are the final settings of SM Tables 7 to 9 among the values that were tried?"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import Check, PrintedNumber, column_of, decided, look

TABLE = "sm_table7_8_9_fair_capacity_tuning"
SIDES = {
    "final_softmax_double_dagger": "Softmax\N{DOUBLE DAGGER}",
    "final_mos_dagger": "MoS\N{DAGGER}",
}


def checks() -> Iterator[Check]:
    """One for each final setting, line by line."""
    finals = [final for column in SIDES for final in column_of(TABLE, column)]
    for final in sorted(finals, key=lambda final: final.line):
        yield _tried(final)


def _tried(final: PrintedNumber) -> Check:
    name = final.row["hyperparameter"]
    tried = [values for values in column_of(TABLE, "values") if values.row["hyperparameter"] == name]
    stages = [values.row["stage"] for values in tried if final.value in map(float, values.text.split())]
    outcome = f"tried in stage {' and '.join(stages)}" if stages else "not among the values tried"
    uses = tried
    if not stages and all(values.row["stage"] != "1" for values in tried):
        default = look("sm_table6_hyperparameters", "mos_moc_ptb", hyperparameter=name)
        uses = [*tried, default]
        outcome = "SM Table 6's value" if default.value == final.value else outcome
    return Check(
        source=f"SM Tables 7 to 9, {SIDES[final.column]}",
        quantity=f"final {name.replace('_', ' ')}",
        printed=final.text,
        recomputed=outcome,
        rule="among the values tried in stage 1 or 2, or SM Table 6's where stage 1 left it at that",
        verdict=decided(not outcome.startswith("not"), weakly=True),
        covers=(final,),
        uses=tuple(uses),
    )
