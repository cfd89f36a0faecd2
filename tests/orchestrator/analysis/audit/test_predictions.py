"""SM Table 2: the data against the copy in ../shared, each flag by brute force, and tables without
what is flagged."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from orchestrator.analysis import Check, audit_numbers
from orchestrator.analysis.audit import check as audit_check
from search_spaces.published import predictions, rows

SHARED = Path(__file__).parents[4].parent / "shared" / "paper"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/paper")
TABLE = "sm_table2_predictions"
SAME = "contexts at which all models have the same five probabilities"
RISING = "lists of five probabilities that do not fall"


def shared(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((SHARED / name).read_text())
    return found


def checks() -> dict[tuple[str, str], Check]:
    return {
        (check.source, check.quantity): check
        for check in audit_numbers(pd.DataFrame({"trial_id": []})).checks
    }


def flagged(quantity: str) -> list[str]:
    """Names of the flagged lists of SM Table 2, without the lists."""
    check = checks()["SM Table 2", quantity]
    assert check.verdict == ("compatible" if check.printed == "none" else "differs")
    return [name.partition(" (")[0] for name in check.printed.split("; ")]


def change(monkeypatch: pytest.MonkeyPatch, probabilities: dict[tuple[str, str], str]) -> None:
    changed = tuple(
        {
            **row,
            "probabilities": probabilities.get(
                (row["context"], row["model"]), row["probabilities"]
            ),
        }
        for row in rows(TABLE)
    )
    monkeypatch.setattr(
        audit_check, "rows", lambda table: changed if table == TABLE else rows(table)
    )


@needs_shared
def test_every_printed_word_and_probability_is_here() -> None:
    following = {
        f"{at['group']} {at['number']}": at["next_token"]
        for at in shared("qualitative_contexts.json")
    }
    printed = shared(f"{TABLE}.json")
    ours = predictions()
    assert len(printed) == sum(map(len, ours.values())) == 156
    for row in printed:
        context = f"{row['group']} {row['number']}"
        here, words = ours[row["model"]][context], [word for word, _ in row["predictions"]]
        assert [list(pair) for pair in here["top"]] == row["predictions"]
        true = following[context]
        assert here["next"] == true
        assert here["rank"] == (1 + words.index(true) if true in words else None)
        assert here["probability"] == dict(row["predictions"]).get(true)


@needs_shared
def test_contexts_with_one_list_are_flagged() -> None:
    lists = defaultdict(set)
    for row in shared(f"{TABLE}.json"):
        lists[f"{row['group']} {row['number']}"].add(
            str([share for _, share in row["predictions"]])
        )
    same = [context for context, different in lists.items() if len(different) == 1]
    assert flagged(SAME) == same == ["random 4", "random 5", "random 6"] and len(lists) == 18
    assert len(checks()["SM Table 2", SAME].covers) == 3 * 8


def test_one_other_list_is_not_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    change(monkeypatch, {("random 4", "MoS"): "0.21 0.01 0.01 0.01 0.01"})
    assert flagged(SAME) == ["random 5", "random 6"]
    change(monkeypatch, {(f"random {number}", "SS"): "0.2 0.1 0.1 0.1 0.1" for number in (4, 5, 6)})
    assert flagged(SAME) == ["none"]


def test_a_list_that_rises_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    falling = {
        ("yang 4", "MoC*"): "0.23 0.03 0.03 0.03 0.02",
        ("authors 5", "LMS-PLIF"): "0.17 0.12 0.08 0.06 0.02",
    }
    assert flagged(RISING) == [", ".join(place) for place in falling]
    change(monkeypatch, falling)
    assert flagged(RISING) == ["none"]
    change(monkeypatch, {**falling, ("yang 1", "SS"): "0.1 0.2 0.1 0.1 0.1"})
    assert flagged(RISING) == ["yang 1, SS"]


def test_true_words_are_found_as_the_text_says() -> None:
    """Yang et al.'s MoS has all six and their MoC none; each of Fig. 3's contexts with a high-rank
    hit has a low-rank one, at "ual" and "subsidies" from MoC* alone (by hand)."""
    found = {
        model: {at for at, cell in cells.items() if cell["rank"]}
        for model, cells in predictions().items()
    }
    assert (len(found["MoS**"]), len(found["MoC**"])) == (6, 0)
    low, high = (
        set().union(*(found[model] for model in models))
        for models in (("Softmax", "LMS-PLIF", "MoC", "MoC*"), ("SS", "GSS", "MoS", "MoS*"))
    )
    assert high <= low and len(high) == 10
    assert high - found["Softmax"] - found["LMS-PLIF"] - found["MoC"] == {"yang 4", "yang 6"}
    [check] = [check for (source, _), check in checks().items() if source == "text on Fig. 3, PTB"]
    assert (check.recomputed, check.verdict) == (f"{len(high)} of {len(high)}", "agrees")


def test_fewer_contexts_give_another_press_rank() -> None:
    found = checks()
    fewer = found["SM 5.1, PTB, MoS", "Press rank over the first 10,000 contexts"]
    assert (fewer.printed, fewer.recomputed, fewer.verdict) == (
        "8933",
        "9979 over all 82,430",
        "explained",
    )
    assert found["SM 5.1, PTB, MoS", "Press rank over all contexts"].recomputed == "9979"
