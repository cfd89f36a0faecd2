"""Open the logs of `--log-to`, before any trial starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from orchestrator.store import StudyKey
from orchestrator.watch.trial_logs import Sink
from trainables.errors import UserError, first_line

FORMS = "mlflow, mlflow=URI or tensorboard"


def open_sinks(logs: Sequence[str], key: StudyKey, storage: Path) -> list[Sink]:
    """Return an open `Sink` for each distinct log.

    Raises UserError if a log is unknown, cannot be reached, needs a missing package, or has a
    password in its address.
    """
    return [_open_sink(log, key, storage) for log in dict.fromkeys(logs)]


def _open_sink(log: str, key: StudyKey, storage: Path) -> Sink:
    name, _, uri = log.partition("=")
    try:
        if log == "tensorboard":
            return _tensorboard(key, storage)
        if name == "mlflow":
            default_uri = f"sqlite:///{storage}/mlflow.db"
            return _mlflow(key, uri or os.environ.get("MLFLOW_TRACKING_URI") or default_uri)
    except ModuleNotFoundError as error:
        raise UserError(
            f"--log-to {name}: package {error.name} is missing. In this project's folder, type: "
            f"pip install '.[{name}]'"
        ) from error
    raise UserError(f"--log-to: no such log: {name}{'=...' if uri else ''}. Use {FORMS}.")


def _tensorboard(key: StudyKey, storage: Path) -> Sink:
    from orchestrator.watch.tensorboard import TensorBoard

    try:
        return TensorBoard(key, storage)
    except OSError as error:
        raise UserError(
            f"--log-to tensorboard: cannot write to {storage}/tensorboard ({error.strerror}). "
            "Make it writable."
        ) from error


def _mlflow(key: StudyKey, uri: str) -> Sink:
    _check_no_password(uri)
    from orchestrator.watch.mlflow import MLflow

    try:
        return MLflow(key, uri)
    # MLflow's stores raise database, HTTP and MLflow errors.
    except Exception as error:
        raise UserError(
            f"--log-to mlflow: cannot use {uri} ({first_line(error)[:300]}). Check that an MLflow "
            "tracking server runs there and gives you access, or name another one with "
            "--log-to mlflow=URI."
        ) from error


def _check_no_password(uri: str) -> None:
    try:
        parts = urlsplit(uri)
        secret = parts.password is not None or any(
            "password" in name.lower() for name, _ in parse_qsl(parts.query)
        )
    except ValueError:
        raise UserError(
            "--log-to mlflow=URI: the address is not valid. Check its brackets and port."
        ) from None
    # Process lists and logs would show the password, so the error omits the address.
    if secret:
        raise UserError(
            "--log-to mlflow=URI: the address contains a password, which others could read. Set "
            "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or PGPASSWORD for a "
            "PostgreSQL address."
        )
