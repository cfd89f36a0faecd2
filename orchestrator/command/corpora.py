"""The commands over texts: `corpus fetch` and `corpus check`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import console

if TYPE_CHECKING:
    from trainables.corpora import CheckedFile

Name = Annotated[str, typer.Argument(metavar="NAME")]


def fetch_corpus(name: Name, data_dir: options.DataDir = None) -> None:
    """Download what is absent or wrong of a corpus (or of the benchmarks, word-similarity), and verify it."""
    from orchestrator.storage import data_folder_at
    from trainables.corpora import WORD_SIMILARITY, fetch, fetch_benchmarks

    folder, data = data_folder_at(data_dir, [name])
    if data is not None:
        data.fetch()
    if name == WORD_SIMILARITY:
        fetch_benchmarks(folder)
    else:
        fetch(name, data_dir=folder)
    if data is not None:
        data.push()
    console().print(f"{name} is complete and verified.")


def check_corpus(name: Name, data_dir: options.DataDir = None) -> None:
    """Verify a corpus (or word-similarity, the benchmarks): files, hashes, counts."""
    from orchestrator.storage import data_folder_at
    from trainables.config import markov_rank
    from trainables.corpora import WORD_SIMILARITY, check, resolve_argument

    folder, data = data_folder_at(data_dir, [name])
    if data is not None:
        data.fetch()
    if name == WORD_SIMILARITY:
        _check_benchmarks(folder)
        return
    name, folder = resolve_argument(name, folder)
    report = check(name, data_dir=folder)
    text, rank = report.identity, markov_rank(name)
    _print_files(report.files)
    console().print(
        f"{name} is in order: train {text.train_tokens:,}, valid {text.valid_tokens:,}, test {text.test_tokens:,} "
        f"tokens; vocabulary {text.vocabulary_size:,}" + ("." if rank is None else f"; the rank of log P is {rank}."),
    )


def _check_benchmarks(folder: Path | None) -> None:
    from trainables.corpora import check_benchmarks, parse_pairs, read_published

    _print_files(check_benchmarks(folder))
    pairs = {benchmark.name: len(parse_pairs(benchmark)) for benchmark in read_published(folder)}
    counts = ", ".join(f"{name} {count:,}" for name, count in pairs.items())
    console().print(f"The {len(pairs)} benchmarks are in order; pairs: {counts}.", soft_wrap=True)


def _print_files(files: Sequence[CheckedFile]) -> None:
    for file in files:
        console().print(f"{file.name}: {file.size_bytes:,} bytes, SHA-256 {file.sha256}")
