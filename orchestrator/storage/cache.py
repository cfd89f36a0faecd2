"""Where this machine keeps copies of what lies in an object store."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from trainables.errors import UserError


def cache_folder(kind: str, url: str) -> Path:
    """The folder of this user, made if need be, for copies of the objects at a URL. Raises UserError."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "softmax-bottleneck-sweeps"
    folder = base / kind / hashlib.sha256(url.encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UserError(
            f"what lies at {url} is copied to this machine while it is in use, and {folder} cannot be made "
            f"({error.strerror}): name a folder that can be written to by the environment variable XDG_CACHE_HOME"
        ) from error
    return folder.resolve()
