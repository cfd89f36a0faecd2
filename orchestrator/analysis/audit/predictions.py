"""SM Table 2: whether its probabilities can be measured ones, and whether its words agree with the
text on Fig. 3."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import Check, column_of, decided
from search_spaces.published import predictions

LOW_RANK, HIGH_RANK = {"Softmax", "LMS-PLIF", "MoC", "MoC*"}, {"SS", "GSS", "MoS", "MoS*"}
"""The models of Fig. 3. LMS-PLIF, with a Press rank of 580, is low-rank in the paper's text."""


def checks() -> Iterator[Check]:
    """Yield two checks of the printed probabilities, which cover flagged ones alone, and one of the
    text on Fig. 3."""
    printed, cells = predictions(), column_of("sm_table2_predictions", "probabilities")
    lists = {
        context: {cell.text for cell in cells if cell.row["context"] == context}
        for context in printed["MoS"]
    }
    for quantity, rule, flagged in (
        (
            "contexts at which all models have the same five probabilities",
            "models that were trained differ: where all print the same probabilities, these were "
            "not measured",
            {cell: cell.row["context"] for cell in cells if len(lists[cell.row["context"]]) == 1},
        ),
        (
            "lists of five probabilities that do not fall",
            "the likeliest word comes first in all other lists",
            {
                cell: f"{cell.row['context']}, {cell.row['model']}"
                for cell in cells
                if cell.text.split() != sorted(cell.text.split(), reverse=True)
            },
        ),
    ):
        yield Check(
            source="SM Table 2",
            quantity=quantity,
            printed="; ".join(
                dict.fromkeys(f"{name} ({cell.text})" for cell, name in flagged.items())
            )
            or "none",
            recomputed="none",
            rule=rule,
            verdict=decided(not flagged, weakly=True),
            covers=tuple(flagged),
        )
    hits = [
        {model for model in printed if printed[model].get(context, {}).get("rank")}
        for context in lists
    ]
    low_rank = [bool(models & LOW_RANK) for models in hits if models & HIGH_RANK]
    yield Check(
        source="text on Fig. 3, PTB",
        quantity="contexts with the true word among the five of a high-rank model, and of a low-rank one too",
        printed="all",
        recomputed=f"{sum(low_rank)} of {len(low_rank)}",
        rule="count of the words of SM Table 2; low-rank are Softmax, LMS-PLIF, MoC and MoC*",
        verdict=decided(all(low_rank)),
    )
