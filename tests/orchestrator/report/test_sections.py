from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd

from orchestrator.analysis import audit_numbers
from orchestrator.analysis.frames import flatten
from orchestrator.analysis.predictions import prediction_numbers
from orchestrator.analysis.similarity import similarity_numbers
from orchestrator.plan import make_plan
from orchestrator.report.formats import DASH
from orchestrator.report.hover import NamedMarks
from orchestrator.report.sections.audit import audit_section
from orchestrator.report.sections.predictions import prediction_section
from orchestrator.report.sections.section import Section
from orchestrator.report.sections.similarity import similarity_section
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES
from search_spaces.study import Lines, Predictions, Similarity
from tests.support.synthetic_results import (
    STUDY,
    csv_records,
    make_results,
    report_on,
    trial_row,
)
from trainables.config import CorpusConfig, CustomConfig, SoftmaxConfig, TrialConfig


def texts_of(section: Section, table: int) -> list[list[str]]:
    text = section.texts[table]
    return [list(text.head), *([cell.text for cell in line] for line in text.body)]


def test_page_explains_its_words(tmp_path: Path) -> None:
    rows, _ = make_results()
    page = report_on(rows, tmp_path).path.read_text()
    terms = page[page.index('<h2 id="terms">') :]
    assert "<dt>Press rank</dt>" in terms and "<dt>gss</dt>" in terms
    assert "<dt>moc</dt>" not in terms and "softmax_dagger" not in terms


def test_page_explains_names_of_a_tuning(tmp_path: Path) -> None:
    plan = make_plan(load_study("fair_capacity"), SCALES["smoke"], "pydocs")
    rows = [trial_row(trial.name, "planned", config=trial.config) for trial in plan.trials]
    assert any("de=0.02 dh=0.0225 noise=0.01" in row["name"] for row in rows)
    page = report_on(rows, tmp_path).path.read_text()
    terms = page[page.index('<h2 id="terms">') :]
    for word in ("mos_dagger", "softmax_double_dagger", "de=", "dh=", "noise="):
        assert f"<dt>{word}</dt>" in terms
    assert "<dt>do=</dt>" not in terms


def test_lines_name_a_users_layers(tmp_path: Path) -> None:
    corpus = CorpusConfig(name="pydocs", sha256="0" * 64)
    layers = [
        SoftmaxConfig(),
        *(CustomConfig(layer=name, sha256="1" * 64) for name in ("Mine", "Other")),
    ]
    rows = []
    for layer in layers:
        config = TrialConfig(seed=1, corpus=corpus, output_layer=layer)
        rows.append(trial_row("x", config=config.model_dump(mode="json"), press_rank=5))
    lines = Lines(x="training.learning_rate", by="output_layer.name", metrics=("press_rank",))
    study = replace(STUDY, analyses=(lines,))
    [answered] = report_on(rows, tmp_path, study=study).answers
    assert answered.numbers.groups == ("softmax", "Mine", "Other")
    assert [record["output_layer.name"] for record in csv_records(tmp_path / "trials.csv")] == [
        *("softmax", "custom", "custom")
    ]


def test_figure_shows_contexts_and_predictions() -> None:
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
            "context",
            config={"seed": 1},
            **{"top_k A 1": json.dumps(hit), "top_k A 2": json.dumps(unknown)},
        ),
        trial_row("softmax", config={"seed": 1}, **{"top_k A 1": json.dumps(miss)}),
    ]
    section = prediction_section(
        prediction_numbers(flatten(rows).frame(), Predictions(), corpus="ptb")
    )
    head, first, _ = texts_of(section, 1)
    assert head == ["context", "ends in", "next word", "context", "softmax"]
    assert first == ["A 1", "no it was", "black", "big 0.50 black 0.25 (2)", "a 0.50 the 0.25 (9)"]
    assert section.written["predictions.csv"].iloc[0, -1] == "no it was"
    [axes] = section.drawings[0].draw().axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == "A 1: \N{HORIZONTAL ELLIPSIS} no it was \N{RIGHTWARDS ARROW} black"
    assert labels[1].endswith("four five six seven eight \N{RIGHTWARDS ARROW} Monday (as <unk>)")
    assert [text.get_text() for text in axes.texts] == ["big (2)", "a", "big", ""]
    [named] = axes.findobj(NamedMarks)
    _, name = named.marks[1]
    assert "black: rank 9, 25%\nexpects:\na 50%\nthe 25%" in name


def test_printed_predictions_are_below_ours() -> None:
    prediction = {
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
    prediction_text = json.dumps(prediction)
    frame = flatten(
        [
            trial_row(
                "mos",
                config={"seed": 1},
                **{"top_k A 1": prediction_text, "top_k A 2": prediction_text},
            )
        ]
    ).frame()
    section = prediction_section(prediction_numbers(frame, request, corpus="ptb"))
    (_, *hits), (_, *words) = texts_of(section, 0), texts_of(section, 1)
    assert hits == [["mos", "2 of 2", "0 of 1"], ["mos (Yang)", DASH, "0 of 1"]]
    assert words[:2] == [
        ["A 1", "metric", "tons", "tons 0.25 (1)", DASH],
        ["A 1, SM Table 2", "metric", "tons", "million 0.38 N 0.24", DASH],
    ]
    assert words[3] == ["A 2, SM Table 2", "metric", "tons", DASH, "million 0.38 N 0.24"]
    common = section.findings[-1]
    assert (common.template, common.numbers["source"]) == ("common_predictions", "SM Table 2")
    assert (common.numbers["all"], common.numbers["none"]) == (0, 2)
    assert [drawing.name for drawing in section.drawings] == ["predictions", "predictions_printed"]
    [axes] = section.drawings[1].draw().axes
    assert [text.get_text() for text in axes.texts] == ["million", "", "", "million"]
    [named] = axes.findobj(NamedMarks)
    assert f"tons: rank {DASH}, {DASH}\nexpects:\nmillion 38%" in named.marks[0][1]
    assert len(section.written["predictions.csv"]) == 2 + 2
    for elsewhere in ({"corpus": "pydocs"}, {"corpus": "ptb", "tag": "1a2b3c4d"}):
        assert "SM Table 2" not in prediction_numbers(frame, request, **elsewhere).to_numpy()


def test_audit_uses_paper_names() -> None:
    section = audit_section(audit_numbers(pd.DataFrame({"trial_id": []})))
    assert "1,636 numbers" in section.sentences[-1]
    texts = [cell.text for table in section.texts for row in table.body for cell in row]
    assert not [text for text in (*texts, *section.sentences) if re.search(r"[a-z]_[a-z0-9]", text)]
    assert section.texts[1].body[0][0].text == "Fig. 2, GSS"


def test_similarity_has_model_columns() -> None:
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
    assert texts_of(section, 0) == [
        ["benchmark", "pairs", *rho],
        ["men", "9", "+0.25", "+0.50", "+0.75"],
    ]
    wins = [
        ["model", *rho],
        ["pairs", "0", "0", "0"],
        ["benchmark", "1", "0", "0"],
        ["model", "1", "1", "0"],
    ]
    assert texts_of(section, 1) == wins
    won, values = (
        section.written[f"{name}.csv"] for name in ("similarity_wins", "word_similarity")
    )
    assert [list(won), *won.astype(str).to_numpy().tolist()] == wins
    assert list(values) == ["benchmark", "pairs", "group", "rho"]
    assert dict(zip(values["group"], values["rho"], strict=True)) == rho
