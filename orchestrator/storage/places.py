"""The storage that an argument names."""

from __future__ import annotations

from pathlib import Path

from orchestrator.storage.bucket import Bucket, is_url
from orchestrator.storage.object_storage import ObjectStorage
from orchestrator.storage.storage import FolderStorage, Storage


def storage_at(argument: str) -> Storage:
    """The place that was typed after --storage: a folder, or s3://BUCKET/PREFIX. Raises UserError
    for another URL."""
    if is_url(argument):
        return ObjectStorage(Bucket.at(argument, "--storage"))
    return FolderStorage(Path(argument).resolve())
