"""A folder of reports for any static host: everything in it leads to what is in it."""

from __future__ import annotations

from pathlib import Path

from trainables.errors import UserError
from trainables.trial_folder import write_file

MARK = "bundle.txt"
TEXT = b"Reports for any static host: open index.html. The next report --bundle may write this folder again.\n"


def open_bundle(folder: Path) -> Path:
    """The folder, absolute, made if need be. Raises UserError where it holds something else than a
    bundle made before, or cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_bundle = (folder / MARK).is_file() and (folder / MARK).read_bytes() == TEXT
        is_bundle = is_bundle and not any(path.is_symlink() for path in folder.iterdir())
        if any(folder.iterdir()) and not is_bundle:
            raise UserError(
                f"--bundle takes a folder that is new, empty or a bundle made before, and {folder} "
                f"holds something "
                "else: name another one"
            )
        write_file(folder / MARK, TEXT)
    except OSError as error:
        raise UserError(
            f"--bundle takes a folder that can be written to, and {folder} cannot be "
            f"({error.strerror or error}): name "
            "another one"
        ) from error
    return folder.resolve()
