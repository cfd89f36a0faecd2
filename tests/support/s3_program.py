"""An S3-compatible server for tests: `python -m tests.support.s3_program`.

Prints its port; each line "off" or "on" that it reads closes or opens that port again, the buckets kept, and is
answered by the same word.
"""

from __future__ import annotations

import sys

from moto.server import ThreadedMotoServer


def main() -> None:
    """Serve until standard input ends."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    print(port, flush=True)
    for line in sys.stdin:
        if line.strip() == "off":
            server.stop()
            assert server._server is not None
            server._server.server_close()
        else:
            server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
            server.start()
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main()
