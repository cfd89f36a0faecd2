"""Word-similarity benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainables.config import TAG_DIGITS, Frozen, TextFile, json_sha256
from trainables.corpora.folders import names_in
from trainables.corpora.published import PUBLISHED, WORD_SIMILARITY
from trainables.corpora.source import read_files
from trainables.errors import UserError

NAMES_OF_FILES = {"WS-353-ALL": "WS-353", "MEN-TR-3k": "MEN", "SIMLEX-999": "SimLex-999"}
"""Benchmark names in AAAI 2021, SM Table 13, by file name, if the two differ."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A word-similarity benchmark's name and file."""

    name: str
    file: TextFile


@dataclass(frozen=True, kw_only=True)
class BenchmarkFolder:
    """A user's folder of word-similarity benchmarks."""

    name: str
    benchmarks: tuple[Benchmark, ...]

    @property
    def tag(self) -> str:
        """Return eight hexadecimal digits of a SHA-256 of the files' names and contents."""
        files = sorted(
            [benchmark.file.name, benchmark.file.sha256] for benchmark in self.benchmarks
        )
        return json_sha256(files)[:TAG_DIGITS]

    @property
    def measurement(self) -> str:
        """Return the name of the measurement that uses these benchmarks."""
        return f"word_similarity-{self.tag}@1"


class WordPair(Frozen):
    """Two lower-case words and their similarity score. Any scale; higher means more alike."""

    first: str
    second: str
    score: float


def parse_pairs(benchmark: Benchmark) -> tuple[WordPair, ...]:
    """Return the word pairs: two words and a number per line, separated by white space.

    Ignores blank lines. Raises UserError with the line for anything else.
    """
    pairs = []
    for number, line in enumerate(benchmark.file.text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            first, second, score = line.lower().split()
            pairs.append(WordPair(first=first, second=second, score=float(score)))
        except ValueError as error:
            raise UserError(
                f"line {number} of {benchmark.file.name} is {line.strip()!r}. Write two words and "
                "a number, separated by white space."
            ) from error
    return tuple(pairs)


def read_folder(folder: Path) -> BenchmarkFolder:
    """Return a folder's benchmarks, one per *.txt file. Their names omit "EN-" and ".txt".

    Raises UserError if no such file exists, a file is unreadable or invalid, or two benchmarks have
    the same name.
    """
    files = sorted(name for name in names_in(folder) if name.endswith(".txt"))
    if not files:
        raise UserError(
            f"--benchmarks: {folder} has no *.txt files with two words and a number per line. "
            "Check the path."
        )
    benchmarks: dict[str, Benchmark] = {}
    for file in files:
        name = _stem(file)
        if name in benchmarks:
            raise UserError(
                f"{benchmarks[name].file.name} and {file} in {folder} are both the benchmark "
                f"{name!r}. Rename one file."
            )
        benchmarks[name] = Benchmark(name=name, file=TextFile.read(folder / file, "--benchmarks"))
        parse_pairs(benchmarks[name])
    return BenchmarkFolder(name=folder.resolve().name, benchmarks=tuple(benchmarks.values()))


def read_published(data_dir: Path | None) -> tuple[Benchmark, ...]:
    """Return the 13 published benchmarks from `data_dir`/word-similarity.

    Raises as `read_files` does.
    """
    files = read_files(WORD_SIMILARITY, PUBLISHED[WORD_SIMILARITY].files, data_dir=data_dir)
    return tuple(
        Benchmark(name=NAMES_OF_FILES.get(stem := _stem(file.name), stem), file=file)
        for file in files
    )


def _stem(file: str) -> str:
    return file.removesuffix(".txt").removeprefix("EN-")
