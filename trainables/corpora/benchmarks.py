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

from trainables.config.measurement_names import TAG_DIGITS
from trainables.corpora.download import Patience
from trainables.corpora.fetching import CheckedFile, OnProgress, fetch_files, remote_files
from trainables.corpora.folders import DEFAULT_DATA_DIR, fetch_command, names_in
from trainables.corpora.known import WORD_SIMILARITY
from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class PublishedBenchmark:
    """One benchmark as it is published."""

    file: str
    size_bytes: int
    sha256: str


BASE_URL = "https://raw.githubusercontent.com/mfaruqui/eval-word-vectors/master/data/word-sim/"
PUBLISHED: Mapping[str, PublishedBenchmark] = {
    # Collected by Faruqui and Dyer 2014; under the names of AAAI 2021, SM Table 13.
    "WS-353": PublishedBenchmark(
        file="EN-WS-353-ALL.txt",
        size_bytes=7_405,
        sha256="ce12919b240af45bdf46d243601eaca2b6212b159b5e7e9b435ee7ee40c5619c",
    ),
    "WS-353-SIM": PublishedBenchmark(
        file="EN-WS-353-SIM.txt",
        size_bytes=4_002,
        sha256="f1da938998863c94e53f72f984a5c6e215f0b46c323aae8f0f4930703a339107",
    ),
    "WS-353-REL": PublishedBenchmark(
        file="EN-WS-353-REL.txt",
        size_bytes=5_134,
        sha256="66a7c88100624d0a391605ff61ce84e11d11ee620d51ec0298da49592838f8fa",
    ),
    "RG-65": PublishedBenchmark(
        file="EN-RG-65.txt",
        size_bytes=1_210,
        sha256="c243f3a91c3f5d8cf67f21a67f6fb80bde8b6bb060851a6a48e6f2d68ec98c9f",
    ),
    "MC-30": PublishedBenchmark(
        file="EN-MC-30.txt",
        size_bytes=543,
        sha256="33ee05911496ff83d95cac351d0746c6f63b9181b605cb7d307f4daa8864511b",
    ),
    "MTurk-287": PublishedBenchmark(
        file="EN-MTurk-287.txt",
        size_bytes=7_218,
        sha256="a9ae3a9decb75a9700fe0cf18b048c1344774d9f40e0196baf8e34d4cd9d1ce5",
    ),
    "MTurk-771": PublishedBenchmark(
        file="EN-MTurk-771.txt",
        size_bytes=19_628,
        sha256="04dc297c9e86b6fa7cf8ef0e4ba2e2c8d3399ec68d92fb7a53c0b4aae27198b5",
    ),
    "MEN": PublishedBenchmark(
        file="EN-MEN-TR-3k.txt",
        size_bytes=53_593,
        sha256="888b13580faa362c7b11da0a670258cf1b1eb4bf0ecbcd418918729a3bd3f43a",
    ),
    "YP-130": PublishedBenchmark(
        file="EN-YP-130.txt",
        size_bytes=2_614,
        sha256="7643fdbc6158c3424061e2cba450c71285767266ff9f3db947bfc1f1f5ce67ab",
    ),
    "VERB-143": PublishedBenchmark(
        file="EN-VERB-143.txt",
        size_bytes=3_320,
        sha256="7259e19961c81912aa4c72de0102e480b2ad2bb9f4ce97d036fbde8e1a403001",
    ),
    "RW-STANFORD": PublishedBenchmark(
        file="EN-RW-STANFORD.txt",
        size_bytes=49_851,
        sha256="5108d54dfc746f44f9c3d7e31d2857c37cf71430bc1594175a61a3b89bb0ae1f",
    ),
    "SimVerb-3500": PublishedBenchmark(
        file="EN-SimVerb-3500.txt",
        size_bytes=65_315,
        sha256="9d84274e7ad029fd3cf69dd0516e9ade624bbef9bd4e2050f6cc1fa01471e0f5",
    ),
    "SimLex-999": PublishedBenchmark(
        file="EN-SIMLEX-999.txt",
        size_bytes=18_024,
        sha256="405394ffb7d25f6d0e3c041f87c9f27d29dc6b047506769953e85c4523b11685",
    ),
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
        files = sorted([each.file, each.sha256] for each in self.benchmarks)
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
    found: dict[str, Benchmark] = {}
    for file in files:
        name = file.removesuffix(".txt").removeprefix("EN-")
        if name in found:
            raise UserError(f"{found[name].file} and {file} in {folder} are both the benchmark {name!r}: rename one")
        found[name] = Benchmark(name=name, file=file, text=_decode(folder / file))
        parse_pairs(found[name])
    return BenchmarkFolder(name=folder.resolve().name, benchmarks=tuple(found.values()))


def published_folder(data_dir: Path | None) -> Path:
    """Where the published benchmarks lie."""
    return (data_dir or DEFAULT_DATA_DIR).resolve() / WORD_SIMILARITY


def read_published(data_dir: Path | None) -> tuple[Benchmark, ...]:
    """The 13 published benchmarks from `data_dir`/word-similarity.

    Raises UserError where a file is missing or is not the published one.
    """
    folder = published_folder(data_dir)
    return tuple(_verified(name, folder / known.file, data_dir) for name, known in PUBLISHED.items())


def check_benchmarks(data_dir: Path | None) -> tuple[CheckedFile, ...]:
    """Verify the files of the published benchmarks. Raises UserError as `read_published` does."""
    return tuple(
        CheckedFile(name=each.file, size_bytes=len(each.text.encode()), sha256=each.sha256)
        for each in read_published(data_dir)
    )


def ensure_benchmarks(data_dir: Path | None, *, on_progress: OnProgress) -> tuple[CheckedFile, ...]:
    """Check the published benchmarks, downloading before that those that are absent. Raises UserError."""
    if not names_in(published_folder(data_dir)).issuperset(known.file for known in PUBLISHED.values()):
        return fetch_benchmarks(data_dir, on_progress=on_progress)
    return check_benchmarks(data_dir)


def fetch_benchmarks(
    data_dir: Path | None, *, on_progress: OnProgress, base_url: str = BASE_URL, patience: Patience | None = None
) -> tuple[CheckedFile, ...]:
    """Download the published benchmarks that are absent or wrong, and check them: see `trainables.corpora.fetch`."""
    files = {known.file: (known.file, known.size_bytes, known.sha256) for known in PUBLISHED.values()}
    fetch_files(remote_files(base_url, files), published_folder(data_dir), on_progress=on_progress, patience=patience)
    return check_benchmarks(data_dir)


def _verified(name: str, path: Path, data_dir: Path | None) -> Benchmark:
    cure = f"get it with: {fetch_command(WORD_SIMILARITY, data_dir)}"
    if not path.exists():
        raise UserError(f"word similarity needs the 13 published benchmarks; {path} is missing: {cure}")
    benchmark = Benchmark(name=name, file=path.name, text=_decode(path))
    if benchmark.sha256 != PUBLISHED[name].sha256:
        raise UserError(
            f"{path} is not the published file of {name}: expected SHA-256 {PUBLISHED[name].sha256}, got "
            f"{benchmark.sha256}: {cure}"
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
