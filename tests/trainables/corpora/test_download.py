"""Downloads over a real connection that breaks, lies and repeats itself."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.support.faulty_server import WebServer
from trainables.corpora.download import Patience, RemoteFile, download
from trainables.errors import UserError

CONTENT = bytes(range(256)) * 2_000
QUICK = Patience(attempts=3, backoff_s=0.001, timeout_s=5.0)


def remote(web: WebServer, content: bytes = CONTENT, served: bytes | None = None) -> RemoteFile:
    web.files["f.txt"] = content if served is None else served
    return RemoteFile(url=web.url + "f.txt", size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def fetched(file: RemoteFile, target: Path) -> list[int]:
    progress: list[int] = []
    download(file, target, on_bytes=progress.append, patience=QUICK)
    return progress


def test_a_file_arrives_whole_and_progress_ends_at_its_size(web: WebServer, tmp_path: Path) -> None:
    progress = fetched(remote(web), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert progress == sorted(progress)
    assert (progress[0], progress[-1]) == (0, len(CONTENT))
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_an_empty_file_is_a_file(web: WebServer, tmp_path: Path) -> None:
    fetched(remote(web, b""), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b""


def test_a_broken_download_goes_on_where_it_stopped(web: WebServer, tmp_path: Path) -> None:
    web.drop_after_bytes = [100_000, 50_000]
    fetched(remote(web), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert [asked for _, asked in web.requests] == [None, "bytes=100000-", "bytes=150000-"]


def test_the_part_of_an_earlier_process_is_used(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(CONTENT[:70_000])
    progress = fetched(remote(web), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert web.requests == [("f.txt", "bytes=70000-")]
    assert progress[0] == 70_000


def test_a_complete_part_needs_no_request(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(CONTENT)
    fetched(remote(web), tmp_path / "f")
    assert web.requests == []


def test_a_server_that_ignores_ranges_starts_over(web: WebServer, tmp_path: Path) -> None:
    web.understands_ranges = False
    web.drop_after_bytes = [100_000]
    fetched(remote(web), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


@pytest.mark.parametrize("left_behind", [b"x" * 70_000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)])
def test_what_another_file_left_behind_is_thrown_away(web: WebServer, tmp_path: Path, left_behind: bytes) -> None:
    (tmp_path / "f.part").write_bytes(left_behind)
    fetched(remote(web), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_range_that_the_server_refuses_starts_over(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(CONTENT[:70_000])
    web.first_statuses = [416]
    fetched(remote(web), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert web.requests == [("f.txt", "bytes=70000-"), ("f.txt", None)]


def test_a_busy_server_is_asked_again(web: WebServer, tmp_path: Path) -> None:
    web.first_statuses = [503, 429]
    fetched(remote(web), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_server_that_stays_busy_ends_the_download_and_keeps_the_part(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(CONTENT[:70_000])
    web.first_statuses = [503] * 9
    with pytest.raises(UserError, match=r"failed 3 times in a row .*503.*70,000 of 512,000 bytes are kept"):
        fetched(remote(web), tmp_path / "f")
    assert len(web.requests) == 3
    assert (tmp_path / "f.part").stat().st_size == 70_000


def test_each_new_byte_renews_the_patience(web: WebServer, tmp_path: Path) -> None:
    web.drop_after_bytes = [50_000] * 10
    fetched(remote(web), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_missing_file_is_not_asked_for_twice(web: WebServer, tmp_path: Path) -> None:
    file = remote(web)
    web.files.clear()
    with pytest.raises(UserError, match=r"answered 404 .*f\.txt"):
        fetched(file, tmp_path / "f")
    assert len(web.requests) == 1


def test_corrupted_content_is_never_put_in_place(web: WebServer, tmp_path: Path) -> None:
    corrupted = b"!" + CONTENT[1:]
    (tmp_path / "f").write_bytes(b"what was here before")
    with pytest.raises(UserError) as caught:
        fetched(remote(web, served=corrupted), tmp_path / "f")
    assert hashlib.sha256(CONTENT).hexdigest() in str(caught.value)
    assert hashlib.sha256(corrupted).hexdigest() in str(caught.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"f": b"what was here before"}


@pytest.mark.parametrize("served", [CONTENT[:-1], CONTENT + b"x"])
def test_a_file_of_another_size_is_refused_at_once(web: WebServer, tmp_path: Path, served: bytes) -> None:
    with pytest.raises(UserError, match=rf"expected 512,000 bytes, the server announces {len(served):,}"):
        fetched(remote(web, served=served), tmp_path / "f")
    assert len(web.requests) == 1


def test_nobody_listening_is_reported_after_the_last_attempt(web: WebServer, tmp_path: Path) -> None:
    file = RemoteFile(url="http://127.0.0.1:9/f.txt", size_bytes=1, sha256="0" * 64)
    with pytest.raises(UserError, match=r"failed 3 times in a row \(.*refused"):
        fetched(file, tmp_path / "f")
    assert web.requests == []
