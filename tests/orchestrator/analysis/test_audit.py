"""Expected values come from hand computation, other libraries and brute force."""

from __future__ import annotations

import math
import re
import statistics

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind_from_stats

from orchestrator.analysis import AuditNumbers, audit_numbers
from orchestrator.analysis.audit.claims import claims, look_up
from orchestrator.analysis.audit.rules import SAMUELSON, joined_deviation
from search_spaces.published import FOLDER, TITLES, rows

NOTHING_RUN = pd.DataFrame({"trial_id": []})
DIFFERING = {
    ("Table 5, PTB", "p-value of MoS\N{DAGGER} against Softmax\N{DOUBLE DAGGER}"),
    ("Table 1, MoS", "perplexity difference, ours"),
    ("text, WikiText-2", "contexts in the test set"),
    ("SM Table 12, WikiText-2, dropout 0.29", "train perplexity"),
    ("SM Table 5, WikiText-2, K=15", "Press rank"),
    ("SM Table 2", "contexts at which all models have the same five probabilities"),
    ("SM Table 2", "lists of five probabilities that are not in descending order"),
}


@pytest.fixture(scope="module")
def numbers() -> AuditNumbers:
    return audit_numbers(NOTHING_RUN)


def test_different_claims(numbers: AuditNumbers) -> None:
    differing = numbers.checks[numbers.checks["verdict"] == "differs"]
    assert set(zip(differing["source"], differing["what"], strict=True)) == DIFFERING
    assert len(numbers.checks) == 256


@pytest.mark.parametrize(
    ("source", "claim", "printed", "recomputed", "verdict"),
    [
        (
            "Table 2, PTB, SigSoftmax",
            "mean test perplexity",
            "57.05",
            f"{(10 * 57.03 + 57.16) / 11:.3f}",
            "agrees",
        ),
        (
            "Table 5, PTB",
            "p-value of MoS\N{DAGGER} against Softmax\N{DOUBLE DAGGER}",
            "0.62",
            f"{ttest_ind_from_stats(56.39, 0.19, 10, 56.45, 0.10, 10).pvalue:.3f}",
            "differs",
        ),
        (
            "SM 5.1, PTB, MoS",
            "Press rank over the first 10,000 contexts",
            "8933",
            "9979",
            "explained",
        ),
        ("text on Fig. 3, PTB", "contexts at which a high-rank model", "all", "10 of 10", "agrees"),
        ("SM Table 5, WikiText-2", "correlation", "positive", "Pearson r = -0.996", "compatible"),
    ],
)
def test_claims_by_hand(
    numbers: AuditNumbers, source: str, claim: str, printed: str, recomputed: str, verdict: str
) -> None:
    checks = numbers.checks[numbers.checks["source"] == source]
    [check] = checks[checks["what"].str.startswith(claim)].to_dict("records")
    assert check["printed"].startswith(printed) and check["recomputed"].startswith(recomputed)
    assert check["verdict"] == verdict


def test_deviation_of_eleven_drawn_values() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        ten, eleventh = random.normal(57, 0.1, size=10), float(random.normal(57, 0.2))
        sd_10, distance = round(ten.std(ddof=1), 2), abs(eleventh - ten.mean())
        exact = statistics.stdev([*ten, eleventh])
        assert joined_deviation(exact, sd_10, distance, 0.01)[1]
        assert not joined_deviation(exact + 0.03, sd_10, distance, 0.01)[1]
    extreme = np.array([0.0] * 10 + [1.0])
    assert math.isclose(abs(1 - extreme.mean()) / extreme.std(ddof=1), SAMUELSON)


def test_word_pairs_agree_where_counted() -> None:
    counts = {}
    for row in rows("sm_table13_word_pairs"):
        counts[f"word_pairs {row['benchmark']}"] = int(row["pairs"])
        counts[f"word_pairs unknown {row['benchmark']}"] = int(row["pairs_not_in_ptb"])
    counts["word_pairs unknown RG-65"] -= 1
    done = {"text": "ptb", "state": "done", "cause": None, **counts}
    failed = {"text": "wikitext-2", "state": "failed", "cause": "train.txt is missing: fetch it"}
    checks = audit_numbers(pd.DataFrame([done, failed])).checks
    pairs = checks[checks["source"].str.startswith("SM Table 13")]
    verdicts = pairs["verdict"].value_counts().to_dict()
    assert verdicts == {"agrees": 25, "open": 13, "differs": 1}
    assert set(pairs[pairs["verdict"] == "open"]["recomputed"]) == {failed["cause"]}


def test_every_reference_matches_printed_value() -> None:
    for row in rows("claims"):
        for reference in filter(None, f"{row['cells']}; {row['inputs']}".split("; ")):
            assert look_up(reference), reference
    for claim in claims(NOTHING_RUN):
        if claim.row["printed"] and claim.cells:
            written = map(float, re.findall(r"-?\d+\.?\d*", claim.row["printed"]))
            assert {*written} & {cell.numbers[0] for cell in claim.cells}, claim.row


def test_account_has_every_number_once(numbers: AuditNumbers) -> None:
    account = numbers.account.set_index("table")
    files = {path.stem for path in FOLDER.glob("*.csv")} - {"claims"}
    assert set(account.index) == set(TITLES) == files and len(files) == 20
    for table in TITLES:
        frame = pd.read_csv(FOLDER / f"{table}.csv", dtype=str)
        cells = frame.drop(columns=["stage", "context", "iteration"], errors="ignore").stack()
        by_hand = pd.to_numeric(cells.str.split().explode(), errors="coerce").notna().sum()
        line = account.loc[table].drop("columns_nothing_determines")
        assert line.sum() == 2 * line["numbers"] == 2 * by_hand, table
    assert account["numbers"].sum() == 1636


def test_first_fate_that_applies_counts(numbers: AuditNumbers) -> None:
    """A number with several verdicts counts once, under the first verdict in the order of `fates`.

    For example, Table 2's p-values agree with SM Table 1, and Table 2's means allow them.
    """
    account = numbers.account.set_index("table")
    fates = ["differs", "agrees", "compatible", "used", "nothing"]
    assert list(account.loc["table2_seeds", fates]) == [0, 40, 58, 0, 10]
    assert list(account.loc["sm_table1_significance", fates]) == [0, 28, 0, 10, 0]
    assert list(account.loc["sm_table2_predictions", fates]) == [130, 0, 0, 0, 650]


def test_flagged_probabilities_by_brute_force(numbers: AuditNumbers) -> None:
    printed = pd.DataFrame(rows("sm_table2_predictions"))
    lists = printed.groupby("context", sort=False)["probabilities"].nunique()
    falls = [
        shares == sorted(shares, reverse=True) for shares in printed["probabilities"].str.split()
    ]
    rising = printed[~np.array(falls)]
    flagged = [*lists.index[lists == 1], *(rising["context"] + ", " + rising["model"])]
    checks = numbers.checks[numbers.checks["source"] == "SM Table 2"]
    claims = "; ".join(checks["printed"]).split("; ")
    assert [name.partition(" (")[0] for name in claims] == flagged and len(flagged) == 5
    assert [len(cells.split()) for cells in checks["cells"]] == [3 * 8, 2]
