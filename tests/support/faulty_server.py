"""A real web server with the faults that downloads meet, and a small published corpus on it."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from trainables.corpora.known import KNOWN, KnownCorpus, PublishedFile

REPOSITORY = Path(__file__).parents[2]
REAL_DATA = REPOSITORY.parent / "shared" / "data"


@dataclass
class WebServer:
    """A server on loopback; change its fields to change how it behaves."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """By path without the leading slash."""
    understands_ranges: bool = True
    first_statuses: list[int] = field(default_factory=list)
    """Answer the first requests with these errors."""
    drop_after_bytes: list[int] = field(default_factory=list)
    """Cut the connections of the first answers after so many bytes of the body."""
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Range header of every request so far."""


def _answer(server: WebServer, handler: BaseHTTPRequestHandler) -> None:
    path, asked = handler.path.lstrip("/"), handler.headers.get("Range")
    server.requests.append((path, asked))
    if server.first_statuses:
        handler.send_error(server.first_statuses.pop(0))
        return
    if path not in server.files:
        handler.send_error(404)
        return
    body, status, start = server.files[path], 200, 0
    span = re.fullmatch(r"bytes=(\d+)-", asked or "")
    if span and server.understands_ranges:
        status, start = 206, int(span[1])
        if start >= len(body):
            handler.send_error(416)
            return
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) - start))
    if status == 206:
        handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
    handler.end_headers()
    length = server.drop_after_bytes.pop(0) if server.drop_after_bytes else len(body)
    handler.wfile.write(body[start : start + length])
    handler.close_connection = True


@contextmanager
def serving() -> Iterator[WebServer]:
    """Run a web server, without files at first."""
    state = WebServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(state, self)

        def log_message(self, *_: Any) -> None:
            """Keep the test output quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        state.url = f"http://127.0.0.1:{http_server.server_port}/"
        thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        http_server.shutdown()
        thread.join()


TINY = {"train": "a b a\nc a <unk>\n" * 20_000, "valid": "a c\n", "test": "b a\n"}


def publish(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the corpus `tiny` on the server and among the known corpora."""
    files = {}
    for split, text in TINY.items():
        content = text.encode()
        web.files[f"tiny/t.{split}.txt"] = content
        files[split] = PublishedFile(
            remote_name=f"t.{split}.txt",
            size_bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            tokens=len(text.split()) + text.count("\n"),
        )
    known = KnownCorpus(base_url=web.url + "tiny/", files=files, vocabulary_size=5)
    monkeypatch.setitem(cast(MutableMapping[str, KnownCorpus], KNOWN), "tiny", known)


def write_corpus(folder: Path, **texts: str) -> Path:
    """Write the given splits as files and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, text in texts.items():
        (folder / f"{split}.txt").write_bytes(text.encode())
    return folder
