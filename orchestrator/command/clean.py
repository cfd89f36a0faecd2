"""The command `clean`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import print_out
from orchestrator.words import counted
from trainables.errors import UserError


def clean(
    storage: Annotated[str, typer.Option(help="The folder of results to clean.")] = options.STORAGE,
) -> None:
    """Remove files and processes that killed runs left on this machine.

    Ends processes. Removes temporary folders, and unfinished files in the storage folder.
    """
    from orchestrator.guard import remove_leftovers
    from orchestrator.storage import is_url, remove_unfinished
    from trainables.config import cache_home

    if is_url(storage):
        raise UserError(
            f"--storage: {storage} is an object store, which holds no unfinished files. Name a "
            f"folder, or leave it out."
        )
    folder = Path(storage)
    if storage != options.STORAGE and not folder.is_dir():
        raise UserError(f"--storage: no such folder: {folder}")
    sentences = [removed_sentence(count)] if (count := remove_leftovers()) else []
    for path in (folder, cache_home()):
        if count := remove_unfinished(path):
            sentences.append(f"Removed {counted(count, 'unfinished file')} below {path}.")
    print_out("\n".join(sentences or ["There was nothing to remove."]))


def removed_sentence(count: int) -> str:
    """Return a sentence that reports removed temporary folders."""
    return f"Removed {counted(count, 'temporary folder')} of earlier runs."
