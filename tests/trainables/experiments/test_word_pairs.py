"""SM Table 13, counted: by hand on three pairs, and with the published files."""

from __future__ import annotations

from typing import Literal

import pytest

from search_spaces.published import rows
from tests.support.faulty_server import REAL_DATA
from trainables.config import WORD_PAIRS, TextFile, WordPairsConfig
from trainables.corpora import Benchmark
from trainables.experiments.word_pairs import count_pairs, measure
from trainables.runtime import Runtime


def test_a_pair_is_unknown_where_one_of_its_words_is() -> None:
    file = TextFile(name="own.txt", text="Cat dog 1\ncat COW 2\n\ncow ox 3\n")
    benchmark = Benchmark(name="own", file=file)
    assert count_pairs(benchmark, {"cat", "dog"}) == (3, 2)
    assert count_pairs(benchmark, set()) == (3, 3)


@pytest.mark.skipif(
    not (REAL_DATA / "word-similarity").is_dir(), reason="no ../shared/data with the benchmarks"
)
@pytest.mark.parametrize("text", ["ptb", "wikitext-2"])
def test_the_published_files_have_the_printed_counts(text: Literal["ptb", "wikitext-2"]) -> None:
    found = measure(WordPairsConfig(seed=0, text=text), Runtime(data_dir=REAL_DATA))[
        WORD_PAIRS
    ].metrics
    printed = {}
    for row in rows("sm_table13_word_pairs"):
        printed[f"word_pairs {row['benchmark']}"] = int(row["pairs"])
        printed[f"word_pairs unknown {row['benchmark']}"] = int(row[f"pairs_not_in_{text}"])
    assert found == printed
