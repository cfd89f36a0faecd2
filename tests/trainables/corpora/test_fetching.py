from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.support.faulty_server import WebServer, publish
from trainables.corpora import PUBLISHED, PUBLISHED_CORPORA, CorpusIdentity, check, ensure, fetch
from trainables.corpora.fetching import download
from trainables.corpora.published import PublishedFolder, corpus_sha256
from trainables.errors import UserError

TINY = {"train.txt": "a b a\nc a <unk>\n" * 20_000, "valid.txt": "a c\n", "test.txt": "b a\n"}


@pytest.fixture
def tiny(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> str:
    publish(web, monkeypatch, "tiny", TINY)
    identity = CorpusIdentity(
        name="tiny",
        sha256=corpus_sha256(PUBLISHED["tiny"].files),
        train_tokens=160_000,
        valid_tokens=3,
        test_tokens=3,
        vocabulary_size=5,
    )
    monkeypatch.setitem(PUBLISHED_CORPORA, "tiny", identity)
    return "tiny"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)


def files_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_fetch_requests_every_file_once(tiny: str, web: WebServer, tmp_path: Path) -> None:
    fetch(tiny, data_dir=tmp_path)
    assert files_in(tmp_path / tiny) == TINY
    identity, files = check(tiny, data_dir=tmp_path)
    assert (identity.train_tokens, {file.name: file.text for file in files}) == (160_000, TINY)
    fetch(tiny, data_dir=tmp_path)
    ensure(tiny, data_dir=tmp_path)
    assert sorted(web.requests) == sorted(web.files)


def test_only_fetch_replaces_wrong_file(tiny: str, web: WebServer, tmp_path: Path) -> None:
    ensure(tiny, data_dir=tmp_path)
    (tmp_path / tiny / "valid.txt").write_text("spoilt\n")
    web.requests.clear()
    for read in (check, ensure):
        with pytest.raises(UserError, match=r"tiny/valid\.txt is not .*corpus fetch tiny"):
            read(tiny, data_dir=tmp_path)
    assert web.requests == []
    fetch(tiny, data_dir=tmp_path)
    assert web.requests == ["tiny/t.valid.txt"]
    assert files_in(tmp_path / tiny) == TINY


@pytest.mark.parametrize("name", ["novels", "pydocs", "markov-100"])
def test_only_published_corpora_are_downloaded(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"only ptb, wikitext-2 and word-similarity .*{name}"):
        fetch(name, data_dir=tmp_path)


def test_broken_connections_are_retried(tiny: str, web: WebServer, tmp_path: Path) -> None:
    web.first_statuses = [503, 429]
    web.drop_after_bytes = [100_000]
    fetch(tiny, data_dir=tmp_path)
    assert len(web.requests) == 3 + 3


@pytest.mark.parametrize(
    ("statuses", "dropped", "reason"),
    [([503] * 4, [], ".503 .*again later"), ([403] * 4, [], ".403"), ([], [1000] * 4, "")],
)
def test_missing_remote_file_ends_download(
    tiny: str,
    web: WebServer,
    tmp_path: Path,
    statuses: list[int],
    dropped: list[int],
    reason: str,
) -> None:
    web.first_statuses, web.drop_after_bytes = statuses.copy(), dropped.copy()
    with pytest.raises(UserError, match=rf"train\.txt .*4 times in a row {reason}.*at {tmp_path}/"):
        fetch(tiny, data_dir=tmp_path)
    assert len(web.requests) == 4
    assert files_in(tmp_path / tiny) == {}


@pytest.mark.parametrize(
    ("variable", "value", "url", "sentence"),
    [
        ("no_proxy", "127.0.0.1", "http://127.0.0.1:9/", "Connection refused"),
        ("http_proxy", "http://127.0.0.1:9", "http://a.invalid/", "refused"),
        ("REQUESTS_CA_BUNDLE", "/nowhere", "https://a.invalid/", "Could not .*: /nowhere"),
    ],
)
def test_network_error_is_one_sentence(
    variable: str,
    value: str,
    url: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv(variable, value)
    with pytest.raises(UserError, match=sentence):
        download(PublishedFolder(url=url, files={"f.txt": "0" * 64}), tmp_path)


def test_permissions_precede_the_name(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill can interrupt the move, so the file must already have its final permissions."""
    modes: list[int] = []
    monkeypatch.setattr(
        "pooch.core.shutil.move", lambda file, _: modes.append(Path(file).stat().st_mode & 0o777)
    )
    mask = os.umask(0o027)
    try:
        fetch(tiny, data_dir=tmp_path)
        assert (modes, os.umask(mask)) == ([0o640] * 3, 0o027)
    finally:
        os.umask(mask)


@pytest.mark.parametrize("served", ["b a", ""])
def test_wrong_content_is_never_installed(
    tiny: str, web: WebServer, tmp_path: Path, served: str
) -> None:
    fetch(tiny, data_dir=tmp_path)
    (tmp_path / tiny / "test.txt").write_text("what was here before")
    web.files["tiny/t.test.txt"] = served.encode()
    with pytest.raises(UserError, match="does not serve the published file"):
        fetch(tiny, data_dir=tmp_path)
    assert files_in(tmp_path / tiny) == TINY | {"test.txt": "what was here before"}


def test_full_disk_error_is_one_sentence(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file/tiny .*Not a directory"):
        fetch(tiny, data_dir=tmp_path / "file")
    monkeypatch.setattr("pooch.core.temporary_file", lambda **_: nullcontext("/dev/full"))
    with pytest.raises(UserError, match=r"No space left on device"):
        fetch(tiny, data_dir=tmp_path)
