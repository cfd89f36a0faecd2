from __future__ import annotations

from datetime import UTC, datetime, timedelta

from orchestrator.analysis.frames import flatten
from orchestrator.analysis.summary import summarise
from orchestrator.report.run_facts import run_facts
from search_spaces.transformer import transformer
from tests.support.synthetic_results import KEY, STUDY, make_results
from trainables.config import CorpusConfig, SoftmaxConfig


def facts(rows: list[dict[str, object]], *times: tuple[datetime, datetime]) -> dict[str, str]:
    results = flatten(rows)
    return run_facts(STUDY, summarise(STUDY, KEY, results, results.frame()), results, times=times)


def test_shared_facts_appear_once() -> None:
    rows, _ = make_results(columns=50)
    values = facts(rows)
    assert values["embedding width"] == "400"
    assert values["LSTM layers"] == "3, of widths 1,150, 1,150, 400"
    assert (values["epochs"], values["vocabulary"], values["weights"]) == ("1,000", "50", "61,234")
    assert values["time of all trials"] == "18 min", "72 trials of 15.25 s"
    rows[3]["config"]["training"]["learning_rate"] = 0.5
    rows[4]["config"]["model"]["context_width"] = 80
    rows[5]["metrics"] = {}
    changed = facts(rows)
    assert changed["learning rate"] == "0.5 to 20"
    assert changed["LSTM layers"] == "3, of widths 1,150, 1,150, 80 to 400"
    assert "embedding width" not in facts([]) and "weights" not in facts([])


def test_model_sizes_are_shown() -> None:
    rows, _ = make_results(columns=50)
    corpus = CorpusConfig(name="ptb", sha256="0" * 64)
    for row, width in zip(rows, (64, 512), strict=False):
        row["config"] = transformer(corpus, SoftmaxConfig(), width=width).model_dump(mode="json")
    values = facts(rows)
    assert values["Transformer"] == "layers 2 to 8, width 64 to 512, heads 2 to 8, window 256"
    assert values["LSTM layers"] == "3, of widths 1,150, 1,150, 400"
    assert "LSTM layers" not in facts(rows[:2]) and "Transformer" not in facts(rows[2:])


def test_date_spans_the_whole_run() -> None:
    rows, _ = make_results(columns=50)
    first = datetime(2026, 3, 4, 23, 58, 59, tzinfo=UTC)
    last, later = first + timedelta(minutes=1), first + timedelta(hours=7)
    assert facts(rows, (first, last))["date"] == "2026-03-04 23:58 to 23:59 UTC"
    dates = facts(rows, (last, later), (first, last))["date"]
    assert dates == "2026-03-04 23:58 to 2026-03-05 06:58 UTC"
    assert "date" not in facts(rows)
