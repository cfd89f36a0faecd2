"""What a study's requests become on the page and in files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from orchestrator.analysis import audit_numbers
from orchestrator.analysis.contrasts import contrast_numbers
from orchestrator.analysis.frames import flatten
from orchestrator.analysis.groups import count_numbers
from orchestrator.analysis.predictions import prediction_numbers
from orchestrator.report.formats import DASH
from orchestrator.report.hover import NamedMarks
from orchestrator.report.sections.audit import audit_section
from orchestrator.report.sections.groups import count_section
from orchestrator.report.sections.predictions import prediction_section
from orchestrator.report.sections.significance import contrast_section
from search_spaces.study import Comparison, Counts, GroupTable, Predictions
from tests.support.synthetic_results import STUDY, done_trial, make_results, report_on, trial_row


def test_two_requests_of_a_kind_get_sections_and_files_of_their_own(tmp_path: Path) -> None:
    rows, _ = make_results()
    for i, row in enumerate(rows):
        row["name"] = f"{'ab'[i % 2]} seed={i // 2}"
        row["config"] = rows[0]["config"] | {"seed": i // 2}
    requests = (
        GroupTable(metrics=("test_perplexity",)),
        GroupTable(metrics=("press_rank",)),
        Comparison(baselines={"a": "b"}),
        Comparison(baselines={"a": "b"}, metric="press_rank"),
    )
    study = replace(STUDY, analyses=requests)
    result = report_on(rows, tmp_path, study=study)
    page = result.path.read_text()
    for key, file in (("groups", "groups.csv"), ("tests", "tests.csv")):
        assert page.count(f'id="{key}"') == page.count(f'id="{key}-2"') == 1
        assert (tmp_path / file).read_text() != (tmp_path / f"2_{file}").read_text()
    assert "test_perplexity_mean" in (tmp_path / "groups.csv").read_text()
    assert "press_rank_mean" in (tmp_path / "2_groups.csv").read_text()


def test_means_that_differ_are_never_called_equal(tmp_path: Path) -> None:
    rows, _ = make_results()
    ranks = {"a": (6, 7), "b": (6, 6), "c": (2, 3), "d": (6, 6)}
    for i, row in enumerate(rows):
        group = "abcd"[i % 4]
        row["name"], row["metrics"]["press_rank"] = (
            f"{group} seed={i // 4}",
            ranks[group][i // 4 % 2],
        )
        row["config"] = rows[0]["config"] | {"seed": i // 4}
    study = replace(STUDY, analyses=(GroupTable(metrics=("press_rank",)),))
    page = report_on(rows, tmp_path, study=study).path.read_text()
    assert "Press rank from low to high: c 2.5, b = d 6, a 6.5." in page


def test_the_page_explains_the_words_that_it_uses_and_no_others(tmp_path: Path) -> None:
    rows, _ = make_results()
    page = report_on(rows, tmp_path).path.read_text()
    terms = page[page.index('<h2 id="terms">') :]
    assert "<dt>Press rank</dt>" in terms and "<dt>gss</dt>" in terms
    assert "<dt>moc</dt>" not in terms and "softmax_dagger" not in terms


def test_the_word_of_the_text_stands_beside_an_unknown_one() -> None:
    told = {
        "next": "<unk>",
        "next_in_text": "banknote",
        "probability": 0.1,
        "rank": 1,
        "top": [["<unk>", 0.1]],
    }
    [row] = make_results()[0][:1]
    row["metrics"] = {"top_k A 1": json.dumps(told)}
    section = prediction_section(
        prediction_numbers(flatten([row]).frame(), Predictions(), corpus="ptb")
    )
    assert "banknote (as <unk>)" in [cell.text for line in section.texts[1].body for cell in line]
    assert section.written["predictions.csv"][1][1:3] == ["<unk>", "banknote"]


def test_the_figure_and_the_table_have_the_words_of_contexts_and_what_models_expect() -> None:
    hit = {
        "context": "no it was",
        "next": "black",
        "probability": 0.25,
        "rank": 2,
        "top": [["big", 0.5], ["black", 0.25]],
    }
    miss = {**hit, "rank": 9, "top": [["a", 0.5], ["the", 0.25]]}
    unknown = {
        **hit,
        "context": "one two three four five six seven eight",
        "next": "<unk>",
        "next_in_text": "Monday",
    }
    rows = [
        trial_row(
            "mos",
            config={"seed": 1},
            **{"top_k A 1": json.dumps(hit), "top_k A 2": json.dumps(unknown)},
        ),
        trial_row("softmax", config={"seed": 1}, **{"top_k A 1": json.dumps(miss)}),
    ]
    section = prediction_section(
        prediction_numbers(flatten(rows).frame(), Predictions(), corpus="ptb")
    )
    table = section.texts[1]
    assert list(table.head) == ["context", "ends in", "next word", "mos", "softmax"]
    assert [cell.text for cell in table.body[0]] == [
        "A 1",
        "no it was",
        "black",
        "big 0.50 black 0.25 (2)",
        "a 0.50 the 0.25 (9)",
    ]
    assert section.written["predictions.csv"][1][-1] == "no it was"
    [axes] = section.drawings[0].draw().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "A 1: \N{HORIZONTAL ELLIPSIS} no it was \N{RIGHTWARDS ARROW} black",
        "A 2: \N{HORIZONTAL ELLIPSIS} four five six seven eight \N{RIGHTWARDS ARROW} Monday (as "
        "<unk>)",
    ]
    assert [text.get_text() for text in axes.texts] == ["big (2)", "a", "big", ""]
    [named] = axes.findobj(NamedMarks)
    assert (
        named.marks[1].trial_id == "softmax"
        and "black: place 9, 25%\nexpects:\na 50%\nthe 25%" in named.marks[1].name
    )


def test_printed_predictions_stand_below_ours() -> None:
    ours = {
        "context": "metric",
        "next": "tons",
        "probability": 0.25,
        "rank": 1,
        "top": [["tons", 0.25]],
    }
    printed = {
        "next": "tons",
        "probability": None,
        "rank": None,
        "top": [("million", 0.38), ("N", 0.24)],
    }
    request = Predictions(
        source="SM Table 2",
        published={"ptb": {"mos": {"A 1": printed}, "mos (Yang)": {"A 2": printed}}},
    )
    ours_text = json.dumps(ours)
    frame = flatten(
        [trial_row("mos", config={"seed": 1}, **{"top_k A 1": ours_text, "top_k A 2": ours_text})]
    ).frame()
    section = prediction_section(prediction_numbers(frame, request, corpus="ptb"))
    hits, words = ([[cell.text for cell in row] for row in table.body] for table in section.texts)
    assert hits == [["mos", "2 of 2", "0 of 1"], ["mos (Yang)", DASH, "0 of 1"]]
    assert words[:2] == [
        ["A 1", "metric", "tons", "tons 0.25 (1)", DASH],
        ["A 1, SM Table 2", "metric", "tons", "million 0.38 N 0.24", DASH],
    ]
    assert words[3] == ["A 2, SM Table 2", "metric", "tons", DASH, "million 0.38 N 0.24"]
    assert "All models have it at 0 of 2 contexts in SM Table 2, none at 2." in section.findings
    assert [drawing.name for drawing in section.drawings] == ["predictions", "predictions_printed"]
    [axes] = section.drawings[1].draw().axes
    assert [text.get_text() for text in axes.texts] == ["million", "", "", "million"]
    [named] = axes.findobj(NamedMarks)
    assert f"tons: place {DASH}, {DASH}\nexpects:\nmillion 38%" in named.marks[0].name
    assert len(section.written["predictions.csv"]) == 1 + 2 + 2
    for elsewhere in ({"corpus": "pydocs"}, {"corpus": "ptb", "tag": "1a2b3c4d"}):
        assert prediction_numbers(frame, request, **elsewhere).printed is None


PAIRS = Comparison(baselines={"gated": "dense"}, metric="test_error_percent")
COUNTS = Counts(metric="chosen_learning_rate", values=(0.01, 0.1, 0.3))
ERRORS = {
    "gated": [9.0, 18.8, 28.9, 39.1, 48.8, 59.2, 70.0],
    "dense": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
}
GATED = [
    done_trial(group, seed, test_error_percent=value, chosen_learning_rate=0.1 if seed else 0.01)
    for group, values in ERRORS.items()
    for seed, value in enumerate(values)
]


def test_pairs_have_a_row_a_comparison_a_file_and_say_who_had_no_partner() -> None:
    section = contrast_section(contrast_numbers(flatten(GATED).frame(), PAIRS, corpus="none"))
    [line] = section.texts[0].body
    assert [cell.text for cell in line[:3]] == ["gated", "dense", "6 of 6"]
    assert "partner with the same seed: 1 value" in section.findings[0]
    head, record = section.files["tests.csv"]
    told = dict(zip(head, record, strict=True))
    assert (told["pairs"], told["pairs_lower"], told["without_partner"]) == (6, 6, 1)
    assert (
        told["test"] == "paired"
        and told["difference_p"] == told["holm_p"]
        and told["mean_baseline"] == 35
    )


def test_unpaired_and_published_p_have_columns_of_their_own() -> None:
    rows = [row for row in GATED if row["name"] != "dense seed=0"]
    request = replace(
        PAIRS, baselines={"gated": "dense", "late": "dense"}, published={"ptb": {"gated": 0.62}}
    )
    rows += [
        done_trial("late", seed, test_error_percent=value)
        for seed, value in enumerate((1.0, 2.0, 4.0), 10)
    ]
    section = contrast_section(contrast_numbers(flatten(rows).frame(), request, corpus="ptb"))
    gated, late = (
        dict(zip(section.texts[0].head, line, strict=True)) for line in section.texts[0].body
    )
    p_value = stats.ttest_ind(ERRORS["gated"], ERRORS["dense"][1:]).pvalue
    assert (
        gated["unpaired p (as in the paper)"].text == f"{p_value:.3f}"
        and gated["published PTB: p"].text == "0.620"
    )
    r = np.corrcoef(ERRORS["gated"][1:6], ERRORS["dense"][1:])[0, 1]
    assert gated["r over seeds"].text == f"{r:+.2f}"
    assert late["lower at"].text == "unpaired, 3 + 5" and "unpaired (Welch" in section.findings[1]
    welch = stats.ttest_ind((1.0, 2.0, 4.0), ERRORS["dense"][1:], equal_var=False).pvalue
    assert late["p"].text == f"{welch:.3f}"
    assert "unpaired tests: from" in section.drawings[0].caption


def test_counts_are_shown_of_values_that_never_came_up_too() -> None:
    section = count_section(count_numbers(flatten(GATED).frame(), COUNTS))
    assert section.texts[0].head == ("model", "0.01", "0.1", "0.3")
    assert section.files["counts.csv"][1:] == [["gated", 1, 6, 0], ["dense", 1, 5, 0]]
    assert section.findings == (
        "Of 13 trials, 2 have the least chosen learning rate of the table (0.01), 0 the greatest "
        "(0.3).",
    )


@pytest.mark.parametrize("state", ["done", "planned"])
def test_both_are_sections_of_a_page(state: str, tmp_path: Path) -> None:
    metrics = [row["metrics"] if state == "done" else {} for row in GATED]
    rows = [
        {**row, "trial_id": f"{place:064x}", "state": state, "metrics": metrics[place]}
        for place, row in enumerate(GATED)
    ]
    page = report_on(
        rows, tmp_path, study=replace(STUDY, analyses=(PAIRS, COUNTS))
    ).path.read_text()
    assert page.count('id="tests"') == page.count('id="counts"') == 1
    assert (tmp_path / "tests.csv").is_file() and "<td>None" not in page


def test_the_audit_uses_names_of_the_papers() -> None:
    section = audit_section(audit_numbers(pd.DataFrame({"trial_id": []})))
    assert "print 1636 numbers" in section.findings[-1]
    shown = [cell.text for table in section.texts for row in table.body for cell in row]
    assert not [text for text in (*shown, *section.findings) if re.search(r"[a-z]_[a-z0-9]", text)]
    assert section.texts[1].body[0][0].text == "Fig. 2, GSS"
