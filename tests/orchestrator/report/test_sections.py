"""What a study's requests become on the page and in files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from orchestrator.report.build import build_report
from search_spaces.study import Comparison, GroupTable
from tests.orchestrator.report.synthetic import KEY, STUDY, make_results


def test_two_requests_of_a_kind_get_sections_and_files_of_their_own(tmp_path: Path) -> None:
    rows, _ = make_results()
    for i, row in enumerate(rows):
        row["name"] = f"{'ab'[i % 2]} seed={i // 2}"
    asked = (
        GroupTable(metrics=("test_perplexity",)),
        GroupTable(metrics=("press_rank",)),
        Comparison(baselines={"a": "b"}),
        Comparison(baselines={"a": "b"}, metric="press_rank"),
    )
    study = replace(STUDY, analyses=asked)
    result = build_report(study, KEY, rows, spectra={}, environments={}, paper_command=None, out=tmp_path)
    page = result.path.read_text()
    for key, file in (("groups", "groups.csv"), ("tests", "tests.csv")):
        assert page.count(f'id="{key}"') == page.count(f'id="{key}-2"') == 1
        assert (tmp_path / file).read_text() != (tmp_path / f"2_{file}").read_text()
    assert "test_perplexity_mean" in (tmp_path / "groups.csv").read_text()
    assert "press_rank_mean" in (tmp_path / "2_groups.csv").read_text()


def test_a_page_without_a_single_result_has_no_number_that_is_none(tmp_path: Path) -> None:
    rows, _ = make_results()
    planned = [{**row, "state": "planned", "metrics": {}} for row in rows]
    study = replace(STUDY, analyses=(GroupTable(metrics=("test_perplexity",)), Comparison(baselines={"a": "b"})))
    result = build_report(study, KEY, planned, spectra={}, environments={}, paper_command=None, out=tmp_path)
    assert "<td>None" not in result.path.read_text() and ">nan<" not in result.path.read_text()
