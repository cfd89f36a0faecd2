from __future__ import annotations

import os
import subprocess
import sys

from tests.support.faulty_server import REPOSITORY


def sha256_elsewhere(corpus: str, *, and_then: str = "", **environment: str) -> str:
    program = (
        "from trainables.corpora import identity\n"
        f"print(identity({corpus!r}, data_dir=None).sha256)\n{and_then}"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
        env={**os.environ, **environment},
    )
    return run.stdout.strip()
