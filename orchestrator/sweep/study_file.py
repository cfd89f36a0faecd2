"""The file of a study's planned trials, from which a store can be rebuilt."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from orchestrator.store import PlannedTrial, StudyKey
from search_spaces.catalog import NAMES, is_command, is_file
from search_spaces.scales import FULL
from trainables.corpora import NO_TEXT
from trainables.errors import UserError
from trainables.trial_folder import DamagedFileError, sealed, unsealed

if TYPE_CHECKING:
    from orchestrator.storage import Storage


SHARED = ".shared"
"""Suffix of an empty file next to a study's file. Workers without a driver run such a study."""


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """Content of a study's file."""

    key: StudyKey
    planned_at: AwareDatetime
    trials: Sequence[PlannedTrial]
    file: str = ""
    """Path of the user's file, or definition of the command; empty for a built-in study."""


_FORMAT = TypeAdapter(StudyFile)


def write_study_file(
    storage: Storage,
    key: StudyKey,
    planned_at: AwareDatetime,
    trials: Sequence[PlannedTrial],
    *,
    file: str = "",
) -> None:
    """Write the file of a study's planned trials. Raises UserError if that fails."""
    content = _FORMAT.dump_json(StudyFile(key=key, planned_at=planned_at, trials=trials, file=file))
    try:
        storage.write_study(f"{key.variant}.json", sealed(content.decode()))
    except OSError as error:
        raise UserError(
            f"--storage: the plan of {key.study} cannot be written to {storage} "
            f"({error.strerror or error}). Free space there, or use another --storage."
        ) from error


def check_name(storage: Storage, key: StudyKey, file: str) -> None:
    """Raise UserError if another file with different content defines a study of this name."""
    for path in storage.study_files() if file else ():
        with suppress(DamagedFileError, OSError):
            content = read_study_file(path)
            other = Path(content.file)
            # The same file name in another folder is a copy of the project.
            if content.key.study != key.study or other.name in ("", Path(file).name):
                continue
            if other.read_bytes() != Path(file).read_bytes():
                raise UserError(
                    f"{file}: its STUDY has the name {key.study!r}, as in {other}. Rename one of "
                    "the two: results are stored by name."
                )


def study_argument(name: str, storage: str) -> str:
    """Return what names a study of the store: a built-in name, a command's definition or a file.

    `storage` is a folder or URL. Assumes that a user's file has the study's name.
    """
    return name if name in NAMES else stored_command(name, storage) or f"./{name}.py"


def stored_command(name: str, storage: str) -> str:
    """Return the definition of the command's study `name`; "" for any other name.

    `storage` is a folder or URL.
    """
    if name in NAMES or is_file(name):
        return ""
    from orchestrator.storage import storage_at  # imports numpy

    key = StudyKey(study=name, scale=FULL.name, corpus=NO_TEXT.name)
    for path in storage_at(storage).study_files():
        with suppress(DamagedFileError):
            if path.stem == key.variant and is_command(file := read_study_file(path).file):
                return file
    return ""


def read_study_file(path: Path) -> StudyFile:
    """Return the content of a study's file. Raises DamagedFileError if it cannot be read."""
    try:
        content = _FORMAT.validate_json(unsealed(path))
        if any(trial.validated.trial_id != trial.trial_id for trial in content.trials):
            raise DamagedFileError(f"{path} has a trial with a wrong id")
    except (OSError, ValidationError) as error:
        raise DamagedFileError(f"{path} is not a complete study file") from error
    return content
