"""Environment variables for Ray, which reads most of them on import."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

FOR_WORKERS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    # Hide the GPUs from a worker that requests none.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_FUNCTION_THREAD_TIMEOUT_S": "30",
    "RAY_ROTATION_MAX_BYTES": "10000000",
    "RAY_ROTATION_BACKUP_COUNT": "1",
    # Tune runs each trial in a new thread, which can then reuse the memory of earlier threads.
    "MALLOC_ARENA_MAX": "1",
}
FOR_THE_DRIVER = {
    # Otherwise Ray listens on the machine's outward address, except on macOS and Windows.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # Ray looks for `uv run` in the parent processes, and would start every worker with it.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_GLOBAL_CHECKPOINT_S": "1e9",
    # Never reached: the dispatcher hands out at most one pack more than fits.
    "TUNE_MAX_PENDING_TRIALS_PG": "1000",
}


def set_environment() -> None:
    """Set Ray's environment variables. If a token exists, turn on authentication."""
    os.environ.update({**FOR_WORKERS, **FOR_THE_DRIVER})
    if token_path().exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def token_path() -> Path:
    """Return the path of Ray's authentication token."""
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token")).expanduser()


def make_token_private() -> None:
    """Create Ray's token if it is missing, and make it readable only by this user."""
    if os.environ.get("RAY_AUTH_MODE") == "disabled" or os.environ.get("RAY_AUTH_TOKEN"):
        return
    path = token_path()
    # If this fails, Ray reports it, or there is nothing to protect.
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
