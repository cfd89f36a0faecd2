"""The script that compares the pages' numbers with the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.docs_numbers import cost, main, with_numbers
from orchestrator.store import PlannedTrial, Store, StudyKey, open_store
from tests.support.store_rows import RUN, outcome
from trainables.config import CorpusConfig, SoftmaxConfig, TrialConfig

KEY = StudyKey(study="plif_lm", scale="quick", corpus="ptb")
HEAD = "| layer | parameters | test perplexity | Press rank |\n| --- | --- | --- | --- |\n"
TRUE = f"{HEAD}| softmax | 1,000 | 101.5 | 26 |"
"""The mean perplexity of 100 and 103."""
CORPUS = CorpusConfig(name="ptb", sha256="0" * 64)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/results.db") as opened:
        configs = [
            TrialConfig(seed=seed, corpus=CORPUS, output_layer=SoftmaxConfig()) for seed in (1, 2)
        ]
        opened.register(
            KEY, [PlannedTrial.of(config, f"softmax seed={config.seed}") for config in configs]
        )
        yield opened


def record(store: Store, *perplexities: float) -> None:
    trials = [row["trial_id"] for row in store.results(KEY)][: len(perplexities)]
    store.claim(trials, owner="me", lease_s=600)
    for trial_id, perplexity in zip(trials, perplexities, strict=True):
        measured = {
            "perplexity@1": {"test_perplexity": perplexity, "parameters": 1000},
            "spectrum@1": {"press_rank": 26},
        }
        store.record(
            outcome(trial_id, measurements=measured), run_id=store.begin_run(RUN), spectrum=None
        )


def run(folder: Path, page: str, *options: str) -> int:
    (folder / "page.md").write_text(page, encoding="utf-8")
    return main(["--storage", str(folder), *options], root=folder, pages={"page.md": [cost]})


def test_a_page_with_the_true_number_passes(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, 100.0, 103.0)
    assert run(tmp_path, f"# Cost\n\n{TRUE}\n") == 0
    assert TRUE in capsys.readouterr().out


def test_a_page_with_another_number_fails(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, 100.0, 103.0)
    wrong = f"# Cost\n\n{TRUE.replace('101.5', '101.6')}\n\nOf 2.5 words.\n"
    assert run(tmp_path, wrong, "--rest") == 1
    printed = capsys.readouterr().out
    assert (
        f"NOT IN page.md:\n{TRUE}" in printed
        and "page.md: 1 lines differ" in printed
        and "Of 2.5 words." in printed
    )
    assert run(tmp_path, wrong, "--write") == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == wrong.replace("101.6", "101.5")


def test_without_a_store_it_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, TRUE) == 2
    assert capsys.readouterr().out.startswith("error: ")


def test_an_unfinished_study_fails(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, 100.0)
    assert run(tmp_path, TRUE) == 1
    assert "NOT FILLED: page.md, cost" in capsys.readouterr().out


def test_writing_keeps_the_breaks_of_lines() -> None:
    page = "It rises from 3\nto 1,004 points (p = 7e-05). It falls\nfrom 2 to 1."
    line = "It rises from \N{MINUS SIGN}2.5 to 10 points (p = 0.1)."
    assert (
        with_numbers(page, line)
        == "It rises from \N{MINUS SIGN}2.5\nto 10 points (p = 0.1). It falls\nfrom 2 to 1."
    )
    rows = "| a | 1.0 [0.5, 2] * |\n| b | 2 |"
    assert with_numbers(rows, "| a | 3 [1, 4] |\n| b | 5 * |") == "| a | 3 [1, 4] |\n| b | 5 * |"
    assert with_numbers(page + page, line) == page + page
