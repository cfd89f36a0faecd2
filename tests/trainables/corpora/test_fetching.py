"""`corpus fetch` and `corpus check` as a whole, against a real server, real disks and real second processes."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from tests.support.faulty_server import TINY, WebServer, publish
from trainables.corpora import check, ensure, fetch
from trainables.corpora.download import Patience
from trainables.errors import UserError

QUICK = Patience(attempts=3, backoff_s=0.001, timeout_s=5.0)


def silent(_file: str, _done: int, _total: int) -> None:
    """Show no progress."""


def test_fetch_brings_every_file_and_reports_progress(tiny: str, tmp_path: Path) -> None:
    progress: list[tuple[str, int, int]] = []
    report = fetch(tiny, data_dir=tmp_path, on_progress=lambda *step: progress.append(step))
    for split, text in TINY.items():
        assert (tmp_path / "tiny" / f"{split}.txt").read_bytes() == text.encode()
        assert (f"{split}.txt", len(text), len(text)) in progress
    assert report.identity.train_tokens == len(TINY["train"].split()) + 40_000
    assert [file.size_bytes for file in report.files] == [len(text) for text in TINY.values()]
    assert report == check(tiny, data_dir=tmp_path)


def test_fetch_again_asks_the_server_for_nothing(tiny: str, web: WebServer, tmp_path: Path) -> None:
    fetch(tiny, data_dir=tmp_path, on_progress=silent)
    web.requests.clear()
    fetch(tiny, data_dir=tmp_path, on_progress=silent)
    assert web.requests == []


def test_fetch_replaces_a_wrong_file_only(tiny: str, web: WebServer, tmp_path: Path) -> None:
    fetch(tiny, data_dir=tmp_path, on_progress=silent)
    (tmp_path / tiny / "valid.txt").write_text("spoilt\n")
    with pytest.raises(UserError, match="not the published file"):
        check(tiny, data_dir=tmp_path)
    web.requests.clear()
    fetch(tiny, data_dir=tmp_path, on_progress=silent)
    assert web.requests == [("tiny/t.valid.txt", None)]
    assert check(tiny, data_dir=tmp_path).files[1].size_bytes == len(TINY["valid"])


def test_a_mirror_serves_the_same_files(tiny: str, web: WebServer, tmp_path: Path) -> None:
    web.files = {path.replace("tiny/", "mirror/deep/"): content for path, content in web.files.items()}
    fetch(tiny, data_dir=tmp_path, on_progress=silent, base_url=web.url + "mirror/deep", patience=QUICK)
    assert {path.split("/")[0] for path, _ in web.requests} == {"mirror"}


def test_ensure_downloads_what_is_absent_and_no_more(tiny: str, web: WebServer, tmp_path: Path) -> None:
    ensure(tiny, data_dir=tmp_path, on_progress=silent)
    assert len(web.requests) == 3
    ensure(tiny, data_dir=tmp_path, on_progress=silent)
    assert len(web.requests) == 3


def test_ensure_does_not_overwrite_a_file_that_is_wrong(tiny: str, web: WebServer, tmp_path: Path) -> None:
    ensure(tiny, data_dir=tmp_path, on_progress=silent)
    (tmp_path / tiny / "test.txt").write_text("the user's own\n")
    with pytest.raises(UserError, match=r"tiny/test\.txt is not the published file.*corpus fetch tiny"):
        ensure(tiny, data_dir=tmp_path, on_progress=silent)
    assert len(web.requests) == 3


def test_ensure_accepts_the_built_in_corpus() -> None:
    report = ensure("pydocs", data_dir=None, on_progress=silent)
    assert report.folder is None
    assert report.identity.train_tokens > 0


def test_only_known_corpora_are_downloaded(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only ptb, wikitext-2 and word-similarity are downloaded; got 'novels'"):
        fetch("novels", data_dir=tmp_path, on_progress=silent)


@pytest.mark.parametrize("name", ["pydocs", "markov"])
def test_built_in_corpora_need_no_download(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{name} is built in, with nothing to download"):
        fetch(name, data_dir=tmp_path, on_progress=silent)


def test_a_full_disk_is_one_sentence(tiny: str, tmp_path: Path) -> None:
    (tmp_path / tiny).mkdir()
    (tmp_path / tiny / "train.txt.part").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"free space.*\(No space left on device\): make room"):
        fetch(tiny, data_dir=tmp_path, on_progress=silent)


def test_a_folder_that_cannot_be_made_is_one_sentence(tiny: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"can be written; .*file/tiny is not one \(Not a directory\)"):
        fetch(tiny, data_dir=tmp_path / "file", on_progress=silent)


def _fetch_at_the_same_time(web: WebServer, start: Barrier, data_dir: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        publish(web, patch)
        start.wait()
        fetch("tiny", data_dir=data_dir, on_progress=silent)


def test_two_processes_fetch_at_the_same_time_and_load_each_file_once(
    tiny: str, web: WebServer, tmp_path: Path
) -> None:
    web.drop_after_bytes = [30_000]
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    arguments = (WebServer(url=web.url), start, tmp_path)
    processes = [context.Process(target=_fetch_at_the_same_time, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert sorted(path for path, asked in web.requests if asked is None) == sorted(web.files)
    assert check(tiny, data_dir=tmp_path).files[0].size_bytes == len(TINY["train"])
