"""A worker process without Ray: `python -m orchestrator.worker.process DESCRIPTOR`.

It gets a job and packs from its parent. It sends beats (JSON bytes), events (JSON text), and the
`Ending` of each pack.
"""

from __future__ import annotations

import os
import sys
import threading
from multiprocessing.connection import Connection

from orchestrator.worker.beats import beating
from orchestrator.worker.failures import BrokenProcessError, MemoryShortageError
from orchestrator.worker.messages import ORDERLY_END, PACK, Ending, EndingKind, Job
from orchestrator.worker.pack_run import run_pack


def main() -> None:
    """Run packs until the parent closes the connection."""
    link = Connection(int(sys.argv[1]))
    job: Job = link.recv()  # from the parent's memory, not from a file
    lock = threading.Lock()

    def send(message: bytes | str | Ending) -> None:
        try:
            with lock:
                link.send(message)
        except OSError:  # the parent died, and its next process runs the trial again
            os._exit(1)

    code_files = [file.name for file in job.options.runtime.code]
    with beating(send, "", code_files):
        while True:
            try:
                pack = PACK.validate_json(link.recv_bytes())
            except EOFError:
                return None
            try:
                run_pack(pack, job, lambda text, _: send(text))
            except MemoryShortageError as error:
                return send(error.ending)
            except BrokenProcessError as error:
                return send(Ending(EndingKind.ERROR, str(error)))
            send(ORDERLY_END)


if __name__ == "__main__":
    main()
