"""The command that removes what killed runs left: `clean`. What `run` removes of it by itself is
said here, too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import print_out
from trainables.errors import UserError


def clean(
    storage: Annotated[
        str, typer.Option(help="The folder of results in which to look.")
    ] = options.STORAGE,
) -> None:
    """Remove what killed runs left on this machine, and their unfinished files in a storage folder.

    A file of one byte that a killed run may leave in an object store, .writable-..., stays.
    """
    from orchestrator.guard import remove_leftovers
    from orchestrator.storage import copies_folder, is_url, remove_unfinished
    from orchestrator.words import counted

    if is_url(storage):
        raise UserError(
            f"--storage: {storage} is an object store, which holds no unfinished files. Name a "
            f"folder, or leave it out"
        )
    folder = Path(storage)
    if storage != options.STORAGE and not folder.is_dir():
        raise UserError(f"--storage: no such folder: {folder}")
    sentences = [removed_sentence(count)] if (count := remove_leftovers()) else []
    for place in (folder, copies_folder()):
        if count := remove_unfinished(place):
            sentences.append(f"Removed {counted(count, 'unfinished file')} below {place}.")
    print_out("\n".join(sentences or ["There was nothing to remove."]))


def removed_sentence(count: int) -> str:
    """Return the sentence about removed temporary folders of earlier runs."""
    from orchestrator.words import counted

    return f"Removed {counted(count, 'temporary folder')} that earlier runs had left."
