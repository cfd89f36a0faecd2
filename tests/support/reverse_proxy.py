"""Real reverse proxies, which serve a web server's pages below a prefix of their own address.

There are two kinds: one removes the prefix from the paths that it forwards (jupyter-server-proxy's
/proxy/PORT, code-server, /rnode of Open OnDemand), the other does not (/proxy/absolute/PORT,
/node of Open OnDemand).
"""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.support.command import wait_for

HOP = ("connection", "transfer-encoding", "keep-alive", "server", "date")
"""Headers between two neighbours, which a proxy does not forward."""
NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location "{prefix}/" {{ proxy_pass http://127.0.0.1:{upstream}{slash}; {host} }}
  }}
}}
"""
Proxy = Callable[[int, str, bool, Path], AbstractContextManager[str]]
"""Called with the server's port, the prefix, whether to remove it, and a folder for files. Yields
the proxy's address."""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def python_proxy(upstream: int, prefix: str, strips: bool, _: Path) -> Iterator[str]:
    """Proxy that prefixes absolute redirects if it removes the prefix, as code-server's does."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404)
                return
            path = self.path.removeprefix(prefix) if strips else self.path
            headers = {name: value for name, value in self.headers.items() if name not in HOP}
            if strips:  # as seen from the server, the request is from the proxy's own machine
                headers["Host"] = f"localhost:{upstream}"
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPConnection("127.0.0.1", upstream, timeout=60)
            connection.request(self.command, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in (*HOP, "content-length"):
                    moved = name == "Location" and strips and value.startswith("/")
                    self.send_header(name, prefix + value if moved else value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(content)
            connection.close()

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def nginx(upstream: int, prefix: str, strips: bool, folder: Path) -> Iterator[str]:
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        pytest.skip("no nginx on this machine")
    port, file = free_port(), folder / "nginx.conf"
    slash, host = ("/", "") if strips else ("", "proxy_set_header Host $http_host;")
    words = {"folder": folder, "port": port, "prefix": unquote(prefix), "upstream": upstream}
    file.write_text(NGINX.format(slash=slash, host=host, **words))
    process = subprocess.Popen([program, "-p", folder, "-c", file], stderr=subprocess.DEVNULL)

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    try:
        wait_for(answers, timeout_s=20, event="nginx")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)
