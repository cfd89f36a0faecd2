"""Counts of benchmark word pairs, and of pairs missing in a vocabulary (AAAI 2021, SM Table 13)."""

from __future__ import annotations

from trainables.config import WORD_PAIRS, WordPairsConfig
from trainables.corpora import parse_pairs, read_published, read_texts, tokenise
from trainables.measurements import pairs_in_vocabulary
from trainables.runtime import Runtime
from trainables.trial_folder import Measured, Metric


def measure(config: WordPairsConfig, runtime: Runtime) -> dict[str, Measured]:
    """Return "word_pairs NAME" and "word_pairs unknown NAME" for each benchmark.

    The vocabulary has the words of all three splits. Raises as `read_texts` does.
    """
    folder = runtime.benchmarks_dir or runtime.data_dir
    texts = read_texts(config.text, data_dir=folder)
    words = {word for text in texts.values() for word in tokenise(text.text)}
    metrics = dict[str, Metric]()
    for benchmark in read_published(folder):
        pairs = parse_pairs(benchmark)
        unknown = len(pairs) - len(pairs_in_vocabulary(pairs, words))
        metrics |= {
            f"word_pairs {benchmark.name}": len(pairs),
            f"word_pairs unknown {benchmark.name}": unknown,
        }
    return {WORD_PAIRS: Measured(metrics)}
