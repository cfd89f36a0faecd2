from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from trainables.corpora.published import PUBLISHED, PublishedFolder

REPOSITORY = Path(__file__).parents[2]
REAL_DATA = REPOSITORY.parent / "shared" / "data"


@dataclass
class WebServer:
    """State of a test's web server. Tests set these fields to make requests fail."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """Content of each file, by URL path without the leading slash."""
    first_statuses: list[int] = field(default_factory=list)
    """HTTP statuses of the first responses; later responses are normal."""
    drop_after_bytes: list[int] = field(default_factory=list)
    """Numbers of bytes after which the server cuts its first connections, one per connection."""
    requests: list[str] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[WebServer]:
    state = WebServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            state.requests.append(path)
            if state.first_statuses or path not in state.files:
                self.send_error(state.first_statuses.pop(0) if state.first_statuses else 404)
                return
            body = state.files[path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(
                body[: state.drop_after_bytes.pop(0) if state.drop_after_bytes else None]
            )
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        state.url = f"http://127.0.0.1:{http_server.server_port}/"
        thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        http_server.shutdown()
        thread.join()


def publish(
    web: WebServer, monkeypatch: pytest.MonkeyPatch, name: str, files: Mapping[str, str]
) -> None:
    web.files |= {f"{name}/t.{file}": text.encode() for file, text in files.items()}
    hashes = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()}
    monkeypatch.setitem(PUBLISHED, name, PublishedFolder(url=f"{web.url}{name}/t.", files=hashes))


def write_corpus(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split, text in texts.items():
        (folder / f"{split}.txt").write_bytes(text.encode())
    return folder
