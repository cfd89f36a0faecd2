"""The command that removes what killed runs left: `clean`. What `run` removes of it by itself is
said here, too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import print_out
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.guard import Leftovers


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
            f"clean takes a folder after --storage, and {storage} is an object store, whose "
            f"objects are whole: "
            "type the command without --storage"
        )
    folder = Path(storage)
    if storage != options.STORAGE and not folder.is_dir():
        raise UserError(
            f"clean takes a folder that exists after --storage, and {folder} is none: name another "
            f"one"
        )
    sentences = [sentence] if (sentence := removed_sentence(remove_leftovers())) else []
    for place in (folder, copies_folder()):
        if sizes := remove_unfinished(place):
            sentences.append(
                f"Removed {counted(len(sizes), 'unfinished file')} ({_megabytes(sum(sizes))}) "
                f"below {place}."
            )
    print_out("\n".join(sentences or ["There was nothing to remove."]))


def removed_sentence(removed: Leftovers) -> str:
    """What was removed of earlier runs; empty where nothing was."""
    from orchestrator.words import counted, listed

    parts = []
    if removed.folders:
        parts.append(
            f"{counted(removed.folders, 'temporary folder')} ({_megabytes(removed.size_bytes)})"
        )
    if removed.processes:
        parts.append(counted(removed.processes, "process", "processes"))
    return f"Removed {listed(parts)} that earlier runs had left." if parts else ""


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"
