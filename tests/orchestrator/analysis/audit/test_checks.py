"""What agrees among the printed numbers and what does not, by hand or by another library; and that
none is left out."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.audit.account import account, audit_numbers
from orchestrator.analysis.audit.check import Check, PrintedNumber
from orchestrator.analysis.audit.seeds import SAMUELSON, spread_of_eleven
from search_spaces import published
from search_spaces.published import rows

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
SHARED = Path(__file__).parents[4].parent / "shared" / "paper"
NOTHING_RUN = pd.DataFrame({"trial_id": []})
DIFFERING = {
    ("Table 5, PTB", "p-value of MoS\N{DAGGER} against Softmax\N{DOUBLE DAGGER}"),
    ("Table 1, MoS", "perplexity difference, ours"),
    ("text, WikiText-2", "contexts in the test set"),
    ("SM Table 12, WikiText-2, dropout 0.29", "train perplexity"),
    ("SM Table 5, WikiText-2, K=15", "Press rank"),
    ("SM Table 2", "contexts at which all models have the same five probabilities"),
    ("SM Table 2", "lists of five probabilities that do not fall"),
}


@pytest.fixture(scope="module")
def checks() -> tuple[Check, ...]:
    return audit_numbers(NOTHING_RUN).checks


def named(checks: tuple[Check, ...], source: str, quantity: str) -> Check:
    [check] = [check for check in checks if (check.source, check.quantity) == (source, quantity)]
    return check


def test_these_do_not_agree_and_no_others(checks: tuple[Check, ...]) -> None:
    assert {
        (check.source, check.quantity) for check in checks if check.verdict == "differs"
    } == DIFFERING
    assert len(checks) == 256
    table5 = named(
        checks, "Table 5, PTB", "p-value of MoS\N{DAGGER} against Softmax\N{DOUBLE DAGGER}"
    )
    assert (table5.printed, table5.recomputed) == (
        "0.62",
        "0.389",
    ) and "allows 0.30 to 0.48" in table5.rule


def test_table_2_is_never_said_to_give_p_values_that_are_over_other_seeds(
    checks: tuple[Check, ...],
) -> None:
    p_values = [check for check in checks if check.quantity == "p-value from Table 2's own means"]
    explained = [check.source for check in p_values if check.verdict == "explained"]
    assert explained == [
        "Table 2, PTB, SigSoftmax",
        "Table 2, PTB, GSS",
        "Table 2, WikiText-2, MoS",
    ]
    assert [check.verdict for check in p_values].count("compatible") == len(p_values) - 3 == 5
    assert all("over 10 of the 11 seeds" in check.rule for check in p_values)


def test_counts_of_the_talk_whose_settings_are_unknown_decide_nothing(
    checks: tuple[Check, ...],
) -> None:
    counts = [
        check
        for check in checks
        if "the talk" in check.source and check.quantity == "parameters, in millions"
    ]
    assert sorted(check.verdict for check in counts) == ["compatible"] * 2 + ["explained"] * 5
    assert all("does not print its own configuration" in check.rule for check in counts)


def test_a_check_has_a_printed_statement_and_a_sign_of_three_points_is_little(
    checks: tuple[Check, ...],
) -> None:
    assert all(check.printed not in ("", "nothing") for check in checks)
    texts = [text for check in checks for text in (check.source, check.quantity, check.rule)]
    assert not [text for text in texts if re.search(r"[a-z]_[a-z0-9]|_1e", text)], (
        "names are those of the papers"
    )
    signs = {
        check.source: check.verdict
        for check in checks
        if check.quantity.startswith("correlation of Press rank")
    }
    assert signs == {
        "SM Table 4, PTB": "agrees",
        "SM Table 5, WikiText-2": "compatible",
        "SM Table 12, WikiText-2": "compatible",
        "SM Table 12, PTB": "compatible",
    }
    by_hand = named(
        checks, "SM Table 5, WikiText-2", "correlation of Press rank and test perplexity"
    )
    assert by_hand.recomputed.endswith("Spearman -1.00, n = 3")


def test_table_2_is_sm_table_1_and_the_authors_seed(checks: tuple[Check, ...]) -> None:
    check = named(checks, "Table 2, PTB, SigSoftmax", "mean test perplexity")
    assert (check.printed, check.recomputed, check.verdict) == (
        "57.05",
        f"{(10 * 57.03 + 57.16) / 11:.3f}",
        "agrees",
    )
    means = [
        check
        for check in checks
        if check.quantity == "mean test perplexity" and check.source.startswith("Table 2")
    ]
    assert len(means) == 10 and {check.verdict for check in means} == {"agrees"}


def test_the_spread_of_eleven_is_that_of_drawn_numbers_and_none_is_further_away_than_samuelson_says() -> (
    None
):
    random = np.random.default_rng(0)
    for _ in range(20):
        ten, eleventh = random.normal(57, 0.1, size=10), float(random.normal(57, 0.2))
        distance = abs(eleventh - ten.mean())
        exact = statistics.stdev([*ten, eleventh])
        low, high = spread_of_eleven(round(ten.std(ddof=1), 2), distance, 0.01)
        assert low <= exact <= high
    extreme = np.array([0.0] * 10 + [1.0])
    assert abs(extreme[-1] - extreme.mean()) / extreme.std(ddof=1) == pytest.approx(SAMUELSON)


def test_word_pairs_agree_where_counted_and_are_open_with_a_reason_elsewhere() -> None:
    counted = {
        f"word_pairs {row['benchmark']}": int(row["pairs"]) for row in rows("sm_table13_word_pairs")
    }
    for row in rows("sm_table13_word_pairs"):
        counted[f"word_pairs unknown {row['benchmark']}"] = int(row["pairs_not_in_ptb"])
    counted["word_pairs unknown RG-65"] -= 1
    done = {"text": "ptb", "state": "done", "cause": None, **counted}
    failed = {"text": "wikitext-2", "state": "failed", "cause": "train.txt is missing: fetch it"}
    numbers = audit_numbers(pd.DataFrame([done, failed]))
    verdicts = [check.verdict for check in numbers.checks if check.source.startswith("SM Table 13")]
    assert (verdicts.count("agrees"), verdicts.count("differs"), verdicts.count("open")) == (
        25,
        1,
        13,
    )
    assert {check.rule for check in numbers.having("open")} == {"train.txt is missing: fetch it"}


def counted_by_hand(path: Path) -> int:
    """Numbers of a CSV file's text: all fields but the heading and the columns of labels, split at
    blanks."""
    heading, *lines = path.read_text().splitlines()
    labels = {
        i for i, name in enumerate(heading.split(",")) if name in ("stage", "context", "iteration")
    }
    words = []
    for line in lines:
        fields = re.findall(r'(?:^|,)("[^"]*"|[^,]*)', line)
        words += [
            word for i, field in enumerate(fields) if i not in labels for word in field.split()
        ]
    return sum(NUMBER.fullmatch(word) is not None for word in words)


def test_the_account_has_every_number_of_every_table_once() -> None:
    lines = {line.table: line for line in audit_numbers(NOTHING_RUN).account}
    files = sorted(published.FOLDER.glob("*.csv"))
    assert list(lines) == [path.stem for path in files] and len(files) == 20
    for path in files:
        assert lines[path.stem].numbers == counted_by_hand(path) > 0, path.stem
    assert sum(line.numbers for line in lines.values()) == 1636


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/paper")
def test_the_project_has_every_table_that_there_is() -> None:
    for path in SHARED.glob("*.csv"):
        packaged = published.FOLDER / path.name
        assert packaged.exists() and packaged.read_text().split() == path.read_text().split(), (
            path.name
        )


def test_the_first_fate_that_applies_counts() -> None:
    place = PrintedNumber("table2_seeds", 0, "rank_mean")

    def check(**fields: object) -> Check:
        return Check(source="", quantity="", printed="", recomputed="", rule="", **fields)  # type: ignore[arg-type]

    def fate(*checks: Check) -> str:
        [line] = [line for line in account(checks) if line.table == place.table]
        return next(name for name, count in line.counts.items() if count == 1)

    used = check(verdict="agrees", uses=(place,))
    agrees, differs = (check(verdict=verdict, covers=(place,)) for verdict in ("agrees", "differs"))
    assert (fate(used), fate(used, agrees), fate(differs, agrees)) == ("used", "agrees", "differs")
    with pytest.raises(LookupError, match="cells without a number"):
        account([check(verdict="agrees", covers=(PrintedNumber("table2_seeds", 0, "model"),))])
