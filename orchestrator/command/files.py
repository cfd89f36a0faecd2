"""The commands `corpus fetch` and `corpus check`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import print_out

if TYPE_CHECKING:
    from trainables.config import TextFile

Name = Annotated[str, typer.Argument(metavar="NAME")]


def fetch_corpus(name: Name, data_dir: options.DataDir = None) -> None:
    """Download and verify a corpus or the word-similarity benchmarks.

    Only missing or wrong files are downloaded. NAME is a corpus or word-similarity.
    """
    from trainables.corpora import fetch

    fetch(name, data_dir=options.text_folder(data_dir))
    print_out(f"{name} is complete and verified.")


def check_corpus(name: Name, data_dir: options.DataDir = None) -> None:
    """Verify the files of a corpus or of the word-similarity benchmarks.

    Prints SHA-256 hashes and numbers of tokens or word pairs. NAME is a corpus or word-similarity.
    """
    from trainables.config import markov_rank, spam_floor, spam_symbols
    from trainables.corpora import WORD_SIMILARITY, check, resolve_argument

    folder = options.text_folder(data_dir)
    if name == WORD_SIMILARITY:
        _check_benchmarks(folder)
        return
    name, folder = resolve_argument(name, folder)
    text, files = check(name, data_dir=folder)
    rank, symbols = markov_rank(name), spam_symbols(name)
    truth = "" if rank is None else f"; the rank of log P is {rank}"
    truth += "" if symbols is None else f"; its entropy is {spam_floor(symbols):.4f} nats per token"
    _print_files(files)
    print_out(
        f"{name} is in order: train {text.train_tokens:,}, valid {text.valid_tokens:,}, test "
        f"{text.test_tokens:,} tokens; vocabulary {text.vocabulary_size:,}{truth}.",
    )


def _check_benchmarks(folder: Path | None) -> None:
    from trainables.corpora import parse_pairs, read_published

    benchmarks = read_published(folder)
    _print_files([benchmark.file for benchmark in benchmarks])
    pairs = {benchmark.name: len(parse_pairs(benchmark)) for benchmark in benchmarks}
    counts = ", ".join(f"{name} {count:,}" for name, count in pairs.items())
    print_out(f"The {len(pairs)} benchmarks are in order; pairs: {counts}.")


def _print_files(files: Sequence[TextFile]) -> None:
    for file in files:
        print_out(f"{file.name}: {len(file.content):,} bytes, SHA-256 {file.sha256}")
