"""`corpus fetch` and `corpus check` as a whole, against a real server that breaks, lies and repeats itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import MutableMapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.support.faulty_server import TINY, WebServer
from trainables.corpora import check, ensure, fetch
from trainables.corpora.fetching import download
from trainables.corpora.published_corpora import PUBLISHED_CORPORA, PublishedCorpus
from trainables.errors import UserError


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again at once."""
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)


def files_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_fetch_brings_every_file_and_asks_for_each_once(tiny: str, web: WebServer, tmp_path: Path) -> None:
    report = fetch(tiny, data_dir=tmp_path)
    assert files_in(tmp_path / tiny) == {f"{split}.txt": text for split, text in TINY.items()}
    assert report.identity.train_tokens == len(TINY["train"].split()) + 40_000
    assert [file.size_bytes for file in report.files] == [len(text) for text in TINY.values()]
    assert report == check(tiny, data_dir=tmp_path)
    fetch(tiny, data_dir=tmp_path)
    assert sorted(web.requests) == sorted(web.files)


def test_fetch_replaces_a_wrong_file_only(tiny: str, web: WebServer, tmp_path: Path) -> None:
    fetch(tiny, data_dir=tmp_path)
    (tmp_path / tiny / "valid.txt").write_text("spoilt\n")
    with pytest.raises(UserError, match="not the published file"):
        check(tiny, data_dir=tmp_path)
    web.requests.clear()
    fetch(tiny, data_dir=tmp_path)
    assert web.requests == ["tiny/t.valid.txt"]
    assert check(tiny, data_dir=tmp_path).files[1].size_bytes == len(TINY["valid"])


def test_ensure_downloads_what_is_absent_and_overwrites_nothing(tiny: str, web: WebServer, tmp_path: Path) -> None:
    ensure(tiny, data_dir=tmp_path)
    ensure(tiny, data_dir=tmp_path)
    (tmp_path / tiny / "test.txt").write_text("the user's own\n")
    with pytest.raises(UserError, match=r"tiny/test\.txt is not the published file.*corpus fetch tiny"):
        ensure(tiny, data_dir=tmp_path)
    assert len(web.requests) == 3


def test_wrong_counts_of_a_published_corpus_are_told(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(tiny, data_dir=tmp_path)
    wrong = replace(PUBLISHED_CORPORA[tiny], vocabulary_size=6)
    monkeypatch.setitem(cast(MutableMapping[str, PublishedCorpus], PUBLISHED_CORPORA), tiny, wrong)
    with pytest.raises(UserError, match=r"tokens of 5 types, and .* tokens of 6 types in .*: correct them there"):
        check(tiny, data_dir=tmp_path)


def test_ensure_accepts_the_built_in_corpus() -> None:
    report = ensure("pydocs", data_dir=None)
    assert report.folder is None
    assert report.identity.train_tokens > 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("novels", f"only {', '.join(PUBLISHED_CORPORA)} and word-similarity are downloaded; got 'novels'"),
        ("pydocs", "pydocs is built in, with nothing to download"),
        ("markov", "markov is built in, with nothing to download"),
    ],
)
def test_only_published_corpora_are_downloaded(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        fetch(name, data_dir=tmp_path)


def test_a_busy_server_and_broken_connections_are_tried_again(tiny: str, web: WebServer, tmp_path: Path) -> None:
    web.first_statuses = [503, 429]
    web.drop_after_bytes = [100_000]
    fetch(tiny, data_dir=tmp_path)
    assert len(web.requests) == 3 + 3


@pytest.mark.parametrize(
    ("status", "requests", "sentence"),
    [
        (503, 4, r"failed 4 times in a row \(503 .*again later"),
        (403, 1, r"failed \(403 .*the address"),
        (404, 1, r"failed \(404 .*the address"),
    ],
)
def test_a_server_without_the_file_ends_the_download(
    tiny: str, web: WebServer, tmp_path: Path, status: int, requests: int, sentence: str
) -> None:
    web.first_statuses = [status] * 9
    with pytest.raises(UserError, match=rf"train\.txt {sentence}.*put the file at {tmp_path}/"):
        fetch(tiny, data_dir=tmp_path)
    assert len(web.requests) == requests
    assert files_in(tmp_path / tiny) == {}


def test_a_connection_that_always_breaks_is_one_sentence(tiny: str, web: WebServer, tmp_path: Path) -> None:
    web.drop_after_bytes = [1000] * 4
    with pytest.raises(UserError, match=r"failed 4 times in a row \(the connection broke off\): type"):
        fetch(tiny, data_dir=tmp_path)


@pytest.mark.parametrize(
    ("variable", "value", "url", "sentence"),
    [
        ("no_proxy", "127.0.0.1", "http://127.0.0.1:9/f", r"4 times in a row \(Connection refused\)"),
        ("http_proxy", "http://127.0.0.1:9", "http://a.invalid/f", r"\(the proxy .*settings: Connection refused\)"),
        ("REQUESTS_CA_BUNDLE", "/nowhere", "https://a.invalid/f", r"failed \(Could not .*: /nowhere\): look"),
    ],
)
def test_a_network_that_is_not_set_up_is_one_sentence(
    variable: str, value: str, url: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv(variable, value)
    with pytest.raises(UserError, match=sentence):
        download({"f.txt": url}, {"f.txt": "0" * 64}, tmp_path)


def test_a_file_has_its_permissions_before_it_has_its_name(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the umask has it: as a kill at the moment of the move would leave it."""
    modes: list[int] = []
    monkeypatch.setattr("pooch.core.shutil.move", lambda file, _: modes.append(Path(file).stat().st_mode & 0o777))
    mask = os.umask(0o027)
    try:
        with pytest.raises(UserError):
            fetch(tiny, data_dir=tmp_path)
        assert (modes, os.umask(mask)) == ([0o640] * 3, 0o027)
    finally:
        os.umask(mask)


@pytest.mark.parametrize("served", ["b a", "a b\n", ""])
def test_other_content_is_never_put_in_place(tiny: str, web: WebServer, tmp_path: Path, served: str) -> None:
    fetch(tiny, data_dir=tmp_path)
    (tmp_path / tiny / "test.txt").write_text("what was here before")
    web.files["tiny/t.test.txt"] = served.encode()
    with pytest.raises(UserError, match="does not serve the published file") as caught:
        fetch(tiny, data_dir=tmp_path)
    assert hashlib.sha256(TINY["test"].encode()).hexdigest() in str(caught.value)
    assert hashlib.sha256(served.encode()).hexdigest() in str(caught.value)
    texts = {f"{split}.txt": text for split, text in TINY.items()}
    assert files_in(tmp_path / tiny) == texts | {"test.txt": "what was here before"}


def test_a_full_disk_is_one_sentence(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pooch.core.temporary_file", lambda **_: nullcontext("/dev/full"))
    with pytest.raises(UserError, match=r"free space.*\(No space left on device\): make room"):
        fetch(tiny, data_dir=tmp_path)


def test_a_folder_that_cannot_be_made_is_one_sentence(tiny: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"can be written; .*file/tiny is not one \(Not a directory\)"):
        fetch(tiny, data_dir=tmp_path / "file")
