"""Corpora and benchmarks in an object store: copied to a machine once, and again where they have
changed."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.storage.bucket import Bucket, is_url, patiently
from orchestrator.storage.disk import cache_folder
from trainables.corpora import PUBLISHED
from trainables.runtime import Runtime
from trainables.trial_folder import locked, write_file

MARKS = ".objects.json"
"""Which objects the files of a copied folder are: name -> mark."""


@dataclass(frozen=True)
class DataFolder:
    """A data folder that is a URL, below which corpora lie as in a folder: ptb/train.txt and so
    on."""

    bucket: Bucket
    names: tuple[str, ...]
    """The folders in it that may be wanted."""
    driver: Path
    """Where the command that made this has its copy."""

    def fetch(self) -> Path:
        """Bring this machine's copy up to date; returns its folder. Raises BucketError."""
        here = cache_folder("data", self.bucket.url)
        for name in self.names:
            objects = self.bucket.files(name).items()
            listed = {
                file: mark for file, mark in objects if file.endswith(".txt") and "/" not in file
            }
            if listed or (here / name).is_dir():
                self._bring(here / name, listed)
        return here

    def push(self) -> None:
        """Copy to the store what was downloaded to this machine's copy since."""
        here = cache_folder("data", self.bucket.url)
        for name in self.names:
            for path in sorted((here / name).glob("*.txt")):
                if path.name not in _marks(path.parent):
                    self.bucket.put(path, f"{name}/{path.name}")

    def _bring(self, folder: Path, listed: dict[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        with locked(folder):
            marks = _marks(folder)
            for file, mark in listed.items():
                if marks.get(file) != mark or not (folder / file).is_file():
                    self.bucket.get(f"{folder.name}/{file}", folder / file)
            # What was downloaded here, and is not there yet, stays.
            for file in marks.keys() - listed.keys():
                (folder / file).unlink(missing_ok=True)
            write_file(folder / MARKS, json.dumps(listed).encode())


def data_folder_at(
    argument: str | None, corpora: Sequence[str]
) -> tuple[Path | None, DataFolder | None]:
    """The local folder of what was typed after --data-dir, and its place in an object store if it
    is a URL.

    `corpora` are those typed. Nothing is copied yet: see `DataFolder.fetch`. Raises UserError for
    another kind of URL."""
    if argument is None or not is_url(argument):
        return None if argument is None else Path(argument), None
    bucket = Bucket.at(argument, "--data-dir")
    names = dict.fromkeys([*PUBLISHED, *(name for name in corpora if "/" not in name)])
    here = cache_folder("data", bucket.url)
    return here, DataFolder(bucket, tuple(names), here)


def on_this_machine(runtime: Runtime, data: DataFolder | None) -> Runtime:
    """The runtime with this machine's copy of the data folder in place of the driver's."""
    if data is None:
        return runtime
    here = _fetched(data)
    corpora = here if runtime.data_dir == data.driver else runtime.data_dir
    benchmarks = here if runtime.benchmarks_dir == data.driver else runtime.benchmarks_dir
    return replace(runtime, data_dir=corpora, benchmarks_dir=benchmarks)


@functools.cache
def _fetched(data: DataFolder) -> Path:
    return patiently(data.fetch)


def _marks(folder: Path) -> dict[str, str]:
    try:
        marks: dict[str, str] = json.loads((folder / MARKS).read_bytes())
    except (OSError, ValueError):
        return {}
    return marks
