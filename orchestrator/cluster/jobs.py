"""Sweeps handed over to a cluster through Ray's job interface: whoever hands one over may then disconnect."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime

from ray.exceptions import RayError
from ray.job_submission import JobSubmissionClient
from requests import RequestException

from trainables.errors import UserError, first_line


def submit(arguments: Sequence[str], dashboard: str, name: str) -> str:
    """Run `sweep.py` with these arguments on the head of the cluster whose dashboard is there; returns the job's id.

    Raises UserError where no such dashboard answers, or not to this token.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    job = f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        client = JobSubmissionClient(dashboard)
        return str(client.submit_job(entrypoint=shlex.join(["python", "-m", "sweep", *arguments]), submission_id=job))
    except (RayError, RequestException, RuntimeError, ConnectionError, ValueError, KeyError) as error:
        raise UserError(
            f"No Ray job interface that takes a job from here answers at --address {dashboard} "
            f"({first_line(error)}): give the dashboard's address, http://HOST:8265, and see that "
            "this machine has the cluster's token."
        ) from error
