"""Tensors of an open checkpoint's safetensors files, read in blocks of rows.

Nothing is unpickled.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from trainables.errors import UserError, did_you_mean
from trainables.trial_folder import DamagedFileError, open_file, read_file

DTYPE_NAMES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
STORED_AS = {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8"}
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
INDEX_ENDING, SINGLE = ".safetensors.index.json", "model.safetensors"
BLOCK_BYTES = 16 * 2**20
MAX_LISTED, LONGEST_NAME = 12, 120
SHARD = re.compile(r"(.+)-\d+-of-\d+\.safetensors")


@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """A tensor in a safetensors file."""

    name: str
    path: Path
    dtype: str
    """Name in safetensors files: F16, BF16, F32, F64, ..."""
    shape: tuple[int, ...]
    start: int
    """Position of the numbers in the file, in bytes."""

    def __str__(self) -> str:
        return f"{self.name[:LONGEST_NAME]} ({' x '.join(f'{size:,}' for size in self.shape)})"

    @property
    def has_floats(self) -> bool:
        """True if the tensor is not empty and its dtype can be read."""
        return self.dtype in DTYPE_NAMES and math.prod(self.shape) > 0

    def blocks(self) -> Iterator[NDArray[np.floating[Any]]]:
        """Yield blocks of rows, as float64 if stored as such, else as float32.

        Raises UserError if the file is unreadable.
        """
        step = max(1, BLOCK_BYTES // (8 * self.shape[1]))
        rows = self._stored()
        for start in range(0, self.shape[0], step):
            yield _widened(rows[start : start + step])

    def vector(self) -> NDArray[np.float64]:
        """Return all numbers of a small tensor. Raises as `blocks` does."""
        return _widened(self._stored()).astype(np.float64).reshape(-1)

    def _stored(self) -> NDArray[Any]:
        with _user_errors(self.path, "a complete safetensors file"):
            return np.memmap(self.path, STORED_AS[self.dtype], "r", self.start, self.shape)


def _widened(numbers: NDArray[Any]) -> NDArray[np.floating[Any]]:
    if numbers.dtype == np.uint16:  # bfloat16, the upper half of a float32
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float64 if numbers.dtype == np.float64 else np.float32)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Tensors of one checkpoint."""

    path: Path
    files: Mapping[str, Path]
    """File path by tensor name. The file may not exist."""
    config: Mapping[str, Any]
    """Content of config.json; may be empty."""

    @property
    def is_shard(self) -> bool:
        """True if the file is one of several shards without an index."""
        return SHARD.fullmatch(self.path.name) is not None

    def tensor(self, name: str) -> StoredTensor:
        """Return the tensor `name`. Raises UserError if the tensor or its file does not exist."""
        path = self.files.get(name)
        if path is None:
            names = [tensor.name for tensor in self._matrices()]
            raise UserError(
                f"{self.path} has no tensor {name!r}: {did_you_mean(name, names)}Choose from: "
                f"{self.matrices_text}."
            )
        tensors = _tensors(path) if path.exists() else {}
        if name not in tensors:
            raise UserError(
                f"{name} is in {path.name}, which is missing. Put that file next to {self.path}."
            )
        return tensors[name]

    def _matrices(self) -> list[StoredTensor]:
        paths = [path for path in dict.fromkeys(self.files.values()) if path.exists()]
        tensors = [tensor for path in paths for tensor in _tensors(path).values()]
        matrices = [tensor for tensor in tensors if len(tensor.shape) == 2]
        return sorted(matrices, key=lambda tensor: -math.prod(tensor.shape))

    @property
    def matrices_text(self) -> str:
        """Largest matrices with their shapes, for a message."""
        matrices = self._matrices()
        hidden_count = len(matrices) - MAX_LISTED
        text = ", ".join(map(str, matrices[:MAX_LISTED])) or "none"
        return text + (f" and {hidden_count:,} smaller ones" if hidden_count > 0 else "")


def is_weights(path: Path) -> bool:
    """Return True if `path` names a checkpoint's folder or file."""
    return path.name.endswith((".safetensors", INDEX_ENDING, *PICKLED)) or path.is_dir()


def open_checkpoint(path: Path) -> Checkpoint:
    """Open a safetensors file, an index of such files, or a folder with either.

    For a shard, opens the index in its folder if that exists. Raises UserError for any other file,
    and for a truncated or damaged one.
    """
    if path.name.endswith(PICKLED):
        raise UserError(
            f"{path} can run code when opened; only safetensors files are read. If you trust it, "
            "convert it: safetensors.torch.save_model, or save_file(torch.load(FILE, "
            "weights_only=True), NEW_FILE)."
        )
    if path.is_dir():
        path = _in_folder(path)
    if shard := SHARD.fullmatch(path.name):
        index = path.with_name(f"{shard[1]}{INDEX_ENDING}")
        path = index if index.exists() else path
    if path.name.endswith(INDEX_ENDING):
        files = {name: path.parent / file for name, file in _weight_map(path).items()}
    else:
        files = dict.fromkeys(_tensors(path), path)
    return Checkpoint(path=path, files=files, config=_config(path.parent / "config.json"))


def _in_folder(folder: Path) -> Path:
    for name in (f"model{INDEX_ENDING}", SINGLE):
        if (folder / name).exists():
            return folder / name
    raise UserError(
        f"{folder} has neither {SINGLE} nor model{INDEX_ENDING}. Name one of its files."
    )


def _tensors(path: Path) -> dict[str, StoredTensor]:
    with _user_errors(path, "a complete safetensors file"), open_file(path) as file:
        with safe_open(path, framework="np"):
            pass  # all names, types, shapes and positions are right
        size = int.from_bytes(file.read(8), "little")
        tensors = json.loads(file.read(size))
    tensors.pop("__metadata__", None)
    return {
        name: StoredTensor(
            name=name,
            path=path,
            dtype=tensor["dtype"],
            shape=tuple(tensor["shape"]),
            start=8 + size + tensor["data_offsets"][0],
        )
        for name, tensor in sorted(tensors.items())
    }


@contextmanager
def _user_errors(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be opened ({error.strerror}). Check the path.") from error
    except (DamagedFileError, SafetensorError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is not {kind}. Download or write it again.") from error


def _json(path: Path) -> Mapping[str, Any]:
    with _user_errors(path, "one JSON object"):
        value = json.loads(read_file(path))
        if not isinstance(value, dict):
            raise ValueError
        return value


def _config(path: Path) -> Mapping[str, Any]:
    config = _json(path) if path.exists() else {}
    # In a model of images and text, the text model's settings count.
    text_config = config.get("text_config")
    return {**config, **text_config} if isinstance(text_config, dict) else config


def _weight_map(index: Path) -> dict[str, str]:
    files = _json(index).get("weight_map")
    if not isinstance(files, dict) or not all(
        isinstance(name, str) and Path(name).name == name and name.endswith(".safetensors")
        for name in files.values()
    ):
        raise UserError(
            f"{index} has no valid weight_map from tensors to files. Download it again, or name "
            "the file with the head."
        )
    return files


def unique(names: Iterable[str], ending: str) -> str | None:
    """Return the name equal to `ending`, or else the only name that ends in "." and `ending`."""
    all_names = list(names)
    if ending in all_names:
        return ending
    matches = [name for name in all_names if name.endswith(f".{ending}")]
    return matches[0] if len(matches) == 1 else None
