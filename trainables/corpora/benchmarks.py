"""Word-similarity benchmarks: pairs of words with the similarity that people gave them. Files, verification, parsing.

Imports neither torch nor numpy.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainables.config import TAG_DIGITS
from trainables.corpora.fetching import CheckedFile, download
from trainables.corpora.folders import DEFAULT_DATA_DIR, fetch_command, names_in
from trainables.corpora.published_corpora import WORD_SIMILARITY
from trainables.errors import UserError

BASE_URL = "https://raw.githubusercontent.com/mfaruqui/eval-word-vectors/master/data/word-sim/"
PUBLISHED: Mapping[str, tuple[str, str]] = {
    # Collected by Faruqui and Dyer 2014; file and SHA-256 by the names of AAAI 2021, SM Table 13.
    "WS-353": ("EN-WS-353-ALL.txt", "ce12919b240af45bdf46d243601eaca2b6212b159b5e7e9b435ee7ee40c5619c"),
    "WS-353-SIM": ("EN-WS-353-SIM.txt", "f1da938998863c94e53f72f984a5c6e215f0b46c323aae8f0f4930703a339107"),
    "WS-353-REL": ("EN-WS-353-REL.txt", "66a7c88100624d0a391605ff61ce84e11d11ee620d51ec0298da49592838f8fa"),
    "RG-65": ("EN-RG-65.txt", "c243f3a91c3f5d8cf67f21a67f6fb80bde8b6bb060851a6a48e6f2d68ec98c9f"),
    "MC-30": ("EN-MC-30.txt", "33ee05911496ff83d95cac351d0746c6f63b9181b605cb7d307f4daa8864511b"),
    "MTurk-287": ("EN-MTurk-287.txt", "a9ae3a9decb75a9700fe0cf18b048c1344774d9f40e0196baf8e34d4cd9d1ce5"),
    "MTurk-771": ("EN-MTurk-771.txt", "04dc297c9e86b6fa7cf8ef0e4ba2e2c8d3399ec68d92fb7a53c0b4aae27198b5"),
    "MEN": ("EN-MEN-TR-3k.txt", "888b13580faa362c7b11da0a670258cf1b1eb4bf0ecbcd418918729a3bd3f43a"),
    "YP-130": ("EN-YP-130.txt", "7643fdbc6158c3424061e2cba450c71285767266ff9f3db947bfc1f1f5ce67ab"),
    "VERB-143": ("EN-VERB-143.txt", "7259e19961c81912aa4c72de0102e480b2ad2bb9f4ce97d036fbde8e1a403001"),
    "RW-STANFORD": ("EN-RW-STANFORD.txt", "5108d54dfc746f44f9c3d7e31d2857c37cf71430bc1594175a61a3b89bb0ae1f"),
    "SimVerb-3500": ("EN-SimVerb-3500.txt", "9d84274e7ad029fd3cf69dd0516e9ade624bbef9bd4e2050f6cc1fa01471e0f5"),
    "SimLex-999": ("EN-SIMLEX-999.txt", "405394ffb7d25f6d0e3c041f87c9f27d29dc6b047506769953e85c4523b11685"),
}


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One benchmark's file, as text, so that it reaches workers on other machines."""

    name: str
    """Of the benchmark."""
    file: str
    text: str

    @property
    def sha256(self) -> str:
        """Of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class BenchmarkFolder:
    """A folder of benchmarks of the user's own."""

    name: str
    benchmarks: tuple[Benchmark, ...]

    @property
    def tag(self) -> str:
        """The first 8 hexadecimal digits of a SHA-256 over the names and hashes of the files, in order of names."""
        files = sorted([benchmark.file, benchmark.sha256] for benchmark in self.benchmarks)
        return hashlib.sha256(json.dumps(files, separators=(",", ":")).encode()).hexdigest()[:TAG_DIGITS]

    @property
    def measurement(self) -> str:
        """The measurement over these benchmarks."""
        return f"word_similarity-{self.tag}@1"


@dataclass(frozen=True, kw_only=True)
class WordPair:
    """Two words in lower case, and their similarity: the higher, the more alike, on any scale."""

    first: str
    second: str
    score: float


def parse_pairs(benchmark: Benchmark) -> tuple[WordPair, ...]:
    """The pairs of a benchmark, a line each: two words and a number, apart by white space; blank lines are left out.

    Raises UserError, with the line, for anything else.
    """
    pairs = []
    for number, line in enumerate(benchmark.text.splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        score = _number(fields[2]) if len(fields) == 3 else None
        if score is None:
            raise UserError(
                "a line of a word-similarity benchmark is two words and a number, apart by a tab or spaces; line "
                f"{number} of {benchmark.file} is {line.strip()!r}: mend it"
            )
        pairs.append(WordPair(first=fields[0].lower(), second=fields[1].lower(), score=score))
    return tuple(pairs)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read_folder(folder: Path) -> BenchmarkFolder:
    """The benchmarks of a user's own folder: its files *.txt, called by their names without "EN-" and ".txt".

    Raises UserError where there are none, one cannot be read or is not a benchmark, or two have one name.
    """
    files = sorted(name for name in names_in(folder) if name.endswith(".txt"))
    if not files:
        raise UserError(
            f"--benchmarks takes a folder of files *.txt with two words and a number a line; {folder} has none: check "
            "the path"
        )
    benchmarks: dict[str, Benchmark] = {}
    for file in files:
        name = file.removesuffix(".txt").removeprefix("EN-")
        if name in benchmarks:
            raise UserError(
                f"{benchmarks[name].file} and {file} in {folder} are both the benchmark {name!r}: rename one"
            )
        benchmarks[name] = Benchmark(name=name, file=file, text=_decode(folder / file))
        parse_pairs(benchmarks[name])
    return BenchmarkFolder(name=folder.resolve().name, benchmarks=tuple(benchmarks.values()))


def published_folder(data_dir: Path | None) -> Path:
    """Where the published benchmarks lie."""
    return (data_dir or DEFAULT_DATA_DIR).resolve() / WORD_SIMILARITY


def read_published(data_dir: Path | None) -> tuple[Benchmark, ...]:
    """The 13 published benchmarks from `data_dir`/word-similarity.

    Raises UserError where a file is missing or is not the published one.
    """
    folder = published_folder(data_dir)
    return tuple(_verified(name, folder / file, data_dir) for name, (file, _) in PUBLISHED.items())


def check_benchmarks(data_dir: Path | None) -> tuple[CheckedFile, ...]:
    """Verify the files of the published benchmarks. Raises UserError as `read_published` does."""
    return tuple(
        CheckedFile(name=benchmark.file, size_bytes=len(benchmark.text.encode()), sha256=benchmark.sha256)
        for benchmark in read_published(data_dir)
    )


def ensure_benchmarks(data_dir: Path | None) -> tuple[CheckedFile, ...]:
    """Check the published benchmarks, downloading before that those that are absent. Raises UserError."""
    if not names_in(published_folder(data_dir)).issuperset(file for file, _ in PUBLISHED.values()):
        return fetch_benchmarks(data_dir)
    return check_benchmarks(data_dir)


def fetch_benchmarks(data_dir: Path | None) -> tuple[CheckedFile, ...]:
    """Download the published benchmarks that are absent or wrong, and check them: see `trainables.corpora.fetch`."""
    hashes = dict(PUBLISHED.values())
    download({file: BASE_URL + file for file in hashes}, hashes, published_folder(data_dir))
    return check_benchmarks(data_dir)


def _verified(name: str, path: Path, data_dir: Path | None) -> Benchmark:
    cure = f"get it with: {fetch_command(WORD_SIMILARITY, data_dir)}"
    if not path.exists():
        raise UserError(f"word similarity needs the 13 published benchmarks; {path} is missing: {cure}")
    benchmark = Benchmark(name=name, file=path.name, text=_decode(path))
    _, published_sha256 = PUBLISHED[name]
    if benchmark.sha256 != published_sha256:
        raise UserError(
            f"{path} is not the published file of {name}: expected SHA-256 {published_sha256}, got {benchmark.sha256}: "
            f"{cure}"
        )
    return benchmark


def _decode(path: Path) -> str:
    """The text of a file, line ends as they are."""
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise UserError(f"the benchmark {path} cannot be read ({error.strerror}): check the file") from error
    except UnicodeDecodeError as error:
        raise UserError(f"a benchmark is text in UTF-8, and {path} is not: convert it") from error
