"""What a study's requests become on the page and in files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from orchestrator.analysis.frames import flatten
from orchestrator.analysis.predictions import prediction_numbers
from orchestrator.analysis.similarity import similarity_numbers
from orchestrator.report.sections.predictions import prediction_section
from orchestrator.report.sections.similarity import similarity_section
from search_spaces.study import Comparison, GroupTable, Similarity
from tests.support.synthetic_results import STUDY, make_results, report_on


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
        row["name"], row["metrics"]["press_rank"] = f"{group} seed={i // 4}", ranks[group][i // 4 % 2]
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


def test_own_benchmarks_have_no_printed_values_beside_them() -> None:
    metrics = {"similarity-0a1b2c MINE": 0.5, "similarity-0a1b2c pairs MINE": 20}
    rows = [{**row, "metrics": metrics} for row in make_results()[0][:2]]
    request = Similarity(published={"ptb": {"MEN": {rows[0]["name"]: 0.4}}})
    numbers = similarity_numbers(flatten(rows).frame(), request, corpus="ptb", tag="0a1b2c")
    assert list(numbers.rho.index) == ["MINE"]
    assert not numbers.published
    assert "published" not in str(similarity_section(numbers).tables)


def test_the_word_of_the_text_stands_beside_an_unknown_one() -> None:
    told = {"next": "<unk>", "next_in_text": "banknote", "probability": 0.1, "rank": 1, "top": [["<unk>", 0.1]]}
    [row] = make_results()[0][:1]
    row["metrics"] = {"top_k A 1": json.dumps(told)}
    section = prediction_section(prediction_numbers(flatten([row]).frame()))
    assert "banknote (as <unk>)" in [cell.text for line in section.tables[1].body for cell in line]
    assert section.files["predictions.csv"][1][1:3] == ["<unk>", "banknote"]
