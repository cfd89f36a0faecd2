"""Quick check that a Ray cluster answers; `ray.init` would fail only after two minutes."""

from __future__ import annotations

import re
import socket
import subprocess
import sys

from trainables.errors import UserError, last_line

CONNECT_S = 5.0
JOIN_S = 14.0
JOIN = (
    "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='CRITICAL')"
)


def check_address(address: str) -> None:
    """Raise UserError within 15 s if no usable Ray cluster answers at `address`.

    `address` is "host:port" or "auto" (this machine's cluster). The check runs in another process,
    because `ray.init` cannot be cancelled.
    """
    if address != "auto":
        _check_port(address)
    command = [sys.executable, "-c", JOIN, address]
    try:
        # In a new session, so that Ctrl-C reaches this process only. Otherwise the end of the other
        # process would look like a refusal.
        process = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=JOIN_S,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        reason = f"no answer within {JOIN_S:g} s"
    else:
        if process.returncode == 0:
            return
        reason = (last_line(process.stderr) or "no reason given").partition(". ")[0]
    raise UserError(
        f"--address: the Ray cluster at {address} cannot be joined ({reason}). Run `ray start "
        "--head` there with the same Ray version and token, or omit --address to run here."
    )


def _check_port(address: str) -> None:
    match = re.fullmatch(r"\[?(?P<host>[^\[\]/]+?)\]?:(?P<port>\d{1,5})", address)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise UserError(
            f"--address: {address!r} is neither HOST:PORT nor auto. Use the address that `ray "
            "start` printed."
        )
    try:
        with socket.create_connection((match["host"], int(match["port"])), timeout=CONNECT_S):
            return
    except OSError as error:
        raise UserError(
            f"--address: no Ray cluster answers at {address} ({error.strerror or error}). Start "
            "one there with `ray start --head`, or omit --address to run on this machine."
        ) from error
