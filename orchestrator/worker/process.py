"""A worker process without Ray: `python -m orchestrator.worker.process DESCRIPTOR`.

It gets a job and packs from its parent, and sends messages: a byte of `Mark`, then the content.
"""

from __future__ import annotations

import os
import sys
import threading
from enum import Enum
from multiprocessing.connection import Connection

from orchestrator.worker.beats import beating
from orchestrator.worker.failures import BrokenProcessError, MemoryShortageError
from orchestrator.worker.messages import PACK, Job
from orchestrator.worker.pack_run import run_pack


class Mark(Enum):
    """Kind of a message."""

    BEAT, EVENTS, DONE, SHORT_OF_MEMORY, BROKEN = b"b", b"e", b"d", b"m", b"x"


def main() -> None:
    """Run packs until the parent closes the connection."""
    link = Connection(int(sys.argv[1]))
    job: Job = link.recv()  # from the parent's memory, not from a file
    lock = threading.Lock()

    def send(mark: Mark, content: bytes) -> None:
        try:
            with lock:
                link.send_bytes(mark.value + content)
        except OSError:  # the parent died, and its next process runs the trial again
            os._exit(1)

    code_files = [file.name for file in job.options.runtime.code]
    with beating(lambda beat: send(Mark.BEAT, beat), "", code_files):
        while True:
            try:
                pack = PACK.validate_json(link.recv_bytes())
            except EOFError:
                return None
            try:
                run_pack(pack, job, lambda text: send(Mark.EVENTS, text.encode()))
            except MemoryShortageError as error:
                return send(Mark.SHORT_OF_MEMORY, error.reason.encode())
            except BrokenProcessError as error:
                return send(Mark.BROKEN, str(error).encode())
            send(Mark.DONE, b"")


if __name__ == "__main__":
    main()
