from __future__ import annotations

from typing import Literal

import pytest

from search_spaces.published import rows
from tests.support.faulty_server import REAL_DATA
from trainables.config import WORD_PAIRS, TextFile, WordPairsConfig
from trainables.corpora import Benchmark
from trainables.experiments import word_pairs
from trainables.experiments.word_pairs import measure
from trainables.runtime import Runtime


def test_unknown_word_makes_pair_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = Benchmark(name="own", file=TextFile(name="own.txt", text="Cat dog 1\ncat COW 2\n"))
    monkeypatch.setattr(word_pairs, "read_published", lambda _: [benchmark])
    text = TextFile(name="train.txt", text="a cat and a dog")
    monkeypatch.setattr(word_pairs, "read_texts", lambda *_, **__: {"train": text})
    [(metrics, _)] = measure(WordPairsConfig(seed=0, text="ptb"), Runtime()).values()
    assert metrics == {"word_pairs own": 2, "word_pairs unknown own": 1}


@pytest.mark.skipif(
    not (REAL_DATA / "word-similarity").is_dir(), reason="needs the benchmarks, in ../shared/data"
)
@pytest.mark.parametrize("text", ["ptb", "wikitext-2"])
def test_published_files_have_printed_counts(text: Literal["ptb", "wikitext-2"]) -> None:
    metrics = measure(WordPairsConfig(seed=0, text=text), Runtime(data_dir=REAL_DATA))[
        WORD_PAIRS
    ].metrics
    printed = {}
    for row in rows("sm_table13_word_pairs"):
        printed[f"word_pairs {row['benchmark']}"] = int(row["pairs"])
        printed[f"word_pairs unknown {row['benchmark']}"] = int(row[f"pairs_not_in_{text}"])
    assert metrics == printed
