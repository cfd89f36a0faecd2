"""A folder of reports for any static host: everything in it leads to what is in it."""

from __future__ import annotations

from pathlib import Path

from trainables.errors import UserError
from trainables.trial_folder import write_file

MARK = "bundle.txt"
TEXT = b"Reports for any static host: open index.html. A later report --bundle may replace it.\n"


def open_bundle(name: str) -> Path:
    """Return the absolute folder, made if need be. Raises UserError if it has no name, holds
    anything but an earlier bundle, or cannot be written to."""
    if not name:
        raise UserError("--bundle takes the path of a folder, and got an empty one")
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        present = list(folder.iterdir())
        is_bundle = folder / MARK in present and (folder / MARK).read_bytes() == TEXT
        if (present and not is_bundle) or any(path.is_symlink() for path in present):
            raise UserError(
                f"--bundle: {folder} holds something else than a bundle. Name a new or empty folder"
            )
        write_file(folder / MARK, TEXT)
    except OSError as error:
        raise UserError(
            f"--bundle: cannot write to {folder} ({error.strerror or error}). Name another folder"
        ) from error
    return folder.resolve()
