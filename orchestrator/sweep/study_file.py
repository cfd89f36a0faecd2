"""The file of a study: which trials it has, so that a new store can be made from the storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from orchestrator.store import Place, PlannedTrial, StudyKey
from trainables.config import read_config
from trainables.errors import UserError
from trainables.trial_folder import DamagedFileError, sealed, unsealed

if TYPE_CHECKING:
    from orchestrator.storage import Storage


@dataclass(frozen=True, kw_only=True)
class _Member:
    name: str
    place: Place | None
    config: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _StudyFile:
    key: StudyKey
    planned_at: datetime
    members: list[_Member]


_FORMAT = TypeAdapter(_StudyFile)


def write_study_file(
    storage: Storage, key: StudyKey, planned_at: datetime, trials: Sequence[PlannedTrial]
) -> None:
    """Write which trials a study has. Raises UserError if the storage takes no file."""
    members = [_Member(name=trial.name, place=trial.place, config=trial.config) for trial in trials]
    content = _FORMAT.dump_json(_StudyFile(key=key, planned_at=planned_at, members=members))
    try:
        storage.write_study(f"{key.variant}.json", sealed(content.decode()))
    except OSError as error:
        raise UserError(
            f"The plan of {key.study} cannot be written to {storage} ({error.strerror or error}): "
            "make room there, or name another one with --storage."
        ) from error


def read_study_file(path: Path) -> tuple[StudyKey, datetime, list[PlannedTrial]]:
    """Return what `write_study_file` was given. Raises DamagedFileError."""
    try:
        content = _FORMAT.validate_json(unsealed(path))
        trials = [
            PlannedTrial.of(read_config(member.config), member.name, member.place)
            for member in content.members
        ]
    except (OSError, ValidationError) as error:
        raise DamagedFileError(f"{path} is no complete study") from error
    return content.key, content.planned_at, trials
