"""Labels that are called like other columns, and lines that would have one label in a legend."""

from __future__ import annotations

import json

from orchestrator.analysis.frames import flatten
from orchestrator.analysis.predictions import prediction_numbers
from orchestrator.analysis.similarity import similarity_numbers
from orchestrator.report.sections.predictions import prediction_section
from orchestrator.report.sections.section import Section
from orchestrator.report.sections.similarity import similarity_section
from search_spaces.analyses import Predictions, Similarity
from tests.support.synthetic_results import trial_row


def texts(section: Section, table: int) -> list[list[str]]:
    """A table's heading and lines."""
    shown = section.texts[table]
    return [list(shown.head), *([cell.text for cell in line] for line in shown.body)]


def test_similarity_has_a_column_for_each_model() -> None:
    rho = {"pairs": 0.25, "benchmark": 0.5, "model": 0.75}
    rows = [
        trial_row(
            name,
            config={"seed": 1, "layer": {"name": name}},
            **{"similarity men": r, "similarity pairs men": 9},
        )
        for name, r in rho.items()
    ]
    section = similarity_section(
        similarity_numbers(flatten(rows).frame(), Similarity(), corpus="ptb")
    )
    assert texts(section, 0) == [
        ["benchmark", "pairs", *rho],
        ["men", "9", "+0.25", "+0.50", "+0.75"],
    ]
    wins = [
        ["model", *rho],
        ["pairs", "0", "0", "0"],
        ["benchmark", "1", "0", "0"],
        ["model", "1", "1", "0"],
    ]
    assert texts(section, 1) == wins
    assert [[str(cell) for cell in line] for line in section.written["similarity_wins.csv"]] == wins
    head, *lines = section.written["word_similarity.csv"]
    assert list(head) == ["benchmark", "pairs", "group", "rho"]
    assert {line[2]: line[3] for line in lines} == rho


def test_predictions_have_a_column_for_each_model() -> None:
    told = {"next": "tons", "probability": 0.1, "rank": 1}
    rows = [
        trial_row(
            name,
            config={"seed": 1, "layer": {"name": name}},
            **{"top_k yang 1": json.dumps({**told, "top": [[f"word{i}", 0.5]]})},
        )
        for i, name in enumerate(("context", "next word"))
    ]
    section = prediction_section(
        prediction_numbers(flatten(rows).frame(), Predictions(), corpus="ptb")
    )
    head, line = texts(section, 1)
    assert head == ["context", "next word", "context", "next word"]
    assert line == ["yang 1", "tons", "word0 0.50 (1)", "word1 0.50 (1)"]
