"""Tensors of an open checkpoint: safetensors files, read in blocks of rows and never as a whole;
nothing is unpickled.

The library checks a file's header; offsets are read from it here, since without torch it hands out
no bfloat16.

Format: 8 bytes with the length of a JSON header, the header (dtype, shape and place of each
tensor), the numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainables.errors import UserError, did_you_mean
from trainables.trial_folder import DamagedFileError, open_file

DTYPES = {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8"}
"""How numpy reads them; bfloat16 as the upper halves of float32."""
DTYPE_NAMES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
INDEX_ENDING, INDEX, SINGLE = (
    ".safetensors.index.json",
    "model.safetensors.index.json",
    "model.safetensors",
)
LONGEST_HEADER, LONGEST_JSON = 32 * 2**20, 8 * 2**20
"""Bytes; a header of 100,000 tensors takes 12 million."""
BLOCK_BYTES = 16 * 2**20
"""Of a block's rows in float64."""
MOST_LISTED, LONGEST_NAME = 12, 120
SHARD = re.compile(r"(.+)-\d+-of-\d+\.safetensors")
"""A file that is one of several."""


@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """A tensor in a file: where its numbers are."""

    name: str
    path: Path
    dtype: str
    """As the format spells it: F16, BF16, F32, F64, ..."""
    shape: tuple[int, ...]
    offset: int
    """Bytes before its first number, from the start of the file."""

    def __str__(self) -> str:
        return f"{self.name[:LONGEST_NAME]} ({' x '.join(f'{size:,}' for size in self.shape)})"

    def blocks(self) -> Iterator[NDArray[np.floating[Any]]]:
        """Its rows in their order, in blocks of float32, or of float64 where the file has that.

        Raises UserError where it is no matrix of float16, bfloat16, float32 or float64, or the file
        cannot be read."""
        if len(self.shape) != 2 or math.prod(self.shape) == 0 or self.dtype not in DTYPES:
            raise UserError(
                "Ranks are those of a matrix of float16, bfloat16, float32 or float64 with at "
                "least one value, and "
                f"{self} of {self.path} is {self.dtype}: choose another one with --tensor."
            )
        rows, columns = self.shape
        step = max(1, BLOCK_BYTES // (8 * columns))
        with _opened(self.path) as file:
            file.seek(self.offset)
            for start in range(0, rows, step):
                yield _read(file, self, min(step, rows - start) * columns).reshape(-1, columns)

    def vector(self) -> NDArray[np.float64]:
        """All its numbers in one row, of a tensor that is small; raises UserError for numbers that
        are no floats."""
        if self.dtype not in DTYPES:
            raise UserError(
                f"{self} of {self.path} must hold floats, and is {self.dtype}: give --context-norm "
                f"instead."
            )
        with _opened(self.path) as file:
            file.seek(self.offset)
            return _read(file, self, math.prod(self.shape)).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The tensors of one checkpoint, in one file or several."""

    path: Path
    tensors: Mapping[str, StoredTensor]
    absent: Mapping[str, Path] = field(default_factory=dict)
    """Tensors of the index whose file is not there."""
    is_shard: bool = False
    """Whether further tensors lie in files that were not named."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """config.json beside it, as the library transformers writes it; empty where there is none."""

    @property
    def names(self) -> list[str]:
        """Of all tensors, there or not."""
        return [*self.tensors, *self.absent]

    def tensor(self, name: str) -> StoredTensor:
        """The tensor of that name. Raises UserError where there is none, or its file is absent."""
        if name in self.tensors:
            return self.tensors[name]
        if name in self.absent:
            raise UserError(
                f"{name} lies in {self.absent[name].name}, which is not beside {self.path}: put "
                f"that file there."
            )
        raise UserError(
            f"{self.path} has no tensor {name!r}: {did_you_mean(name, self.matrices)}its matrices "
            f"are {self.listed}."
        )

    @property
    def matrices(self) -> list[str]:
        """Names of the tensors with two dimensions, the largest first."""
        two = [tensor for tensor in self.tensors.values() if len(tensor.shape) == 2]
        return [tensor.name for tensor in sorted(two, key=lambda tensor: -math.prod(tensor.shape))]

    @property
    def listed(self) -> str:
        """The largest of these, with their shapes, for a sentence."""
        names = self.matrices
        more = f" and {len(names) - MOST_LISTED:,} smaller ones" if len(names) > MOST_LISTED else ""
        return ", ".join(str(self.tensors[name]) for name in names[:MOST_LISTED]) + more or "none"


def is_weights(path: Path) -> bool:
    """Whether a path is for `open_checkpoint`, by its name: all but a .npy file and what is unlike
    a checkpoint."""
    return path.name.endswith((".safetensors", INDEX_ENDING, *PICKLED)) or path.is_dir()


def open_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in a safetensors file, behind an index of several, or in a folder with either.

    A file that is one of several, with the index beside it, stands for all of them. Raises
    UserError for what is no such file, not whole or damaged."""
    if path.name.endswith(PICKLED):
        raise UserError(
            f"Only safetensors are read, as a file like {path} can run code when it is opened: "
            f"where you trust it, "
            "convert it with safetensors.torch.save_model, or save_file(torch.load(FILE, "
            "weights_only=True), NEW_FILE)."
        )
    if path.is_dir():
        path = _in_folder(path)
    config = _config(path.parent / "config.json")
    index = path if path.name.endswith(INDEX_ENDING) else _index_of(path)
    if index is None:
        is_shard = SHARD.fullmatch(path.name) is not None
        return Checkpoint(path=path, tensors=_tensors(path), is_shard=is_shard, config=config)
    files = _weight_map(index)
    there = {
        name: index.parent / name
        for name in dict.fromkeys(files.values())
        if (index.parent / name).exists()
    }
    stored = {file: _tensors(where) for file, where in there.items()}
    tensors = {
        name: stored[file][name] for name, file in files.items() if name in stored.get(file, ())
    }
    absent = {name: index.parent / file for name, file in files.items() if name not in tensors}
    return Checkpoint(path=index, tensors=tensors, absent=absent, config=config)


def _in_folder(folder: Path) -> Path:
    for name in (INDEX, SINGLE):
        if (folder / name).exists():
            return folder / name
    files = sorted(folder.glob("*.safetensors"))
    if len(files) == 1:
        return files[0]
    raise UserError(
        f"A folder stands for the {SINGLE} or {INDEX} in it, and {folder} has neither: name one of "
        f"its files."
    )


def _index_of(path: Path) -> Path | None:
    """The index beside a file that is one of several."""
    shard = SHARD.fullmatch(path.name)
    index = path.with_name(f"{shard[1]}{INDEX_ENDING}") if shard else None
    return index if index is not None and index.exists() else None


def _tensors(path: Path) -> dict[str, StoredTensor]:
    """By name, those of one file."""
    # Imported here, as a GPU machine that runs the benchmarks may lack it.
    from safetensors import SafetensorError, safe_open

    damaged = UserError(
        f"{path} must be a whole safetensors file, and is damaged or none: get or write it again."
    )
    try:
        with open_file(path) as file:
            length = int.from_bytes(file.read(8), "little")
            size = path.stat().st_size
            if size < 8 + length:
                raise damaged
            if length > LONGEST_HEADER:
                raise UserError(
                    f"The header of a safetensors file may have {LONGEST_HEADER:,} bytes, and that "
                    f"of {path} has "
                    f"{length:,}: save the head alone."
                )
            text = file.read(length)
        with safe_open(
            path, framework="numpy"
        ):  # which checks the header, and that the tensors fill the file
            header = json.loads(text)
        header.pop("__metadata__", None)
        return {name: _stored(name, path, entry, 8 + length) for name, entry in header.items()}
    except OSError as error:
        raise _cannot_open(path, error) from error
    except (
        DamagedFileError,
        SafetensorError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise damaged from error


def _stored(name: str, path: Path, entry: Mapping[str, Any], start: int) -> StoredTensor:
    dtype, shape = str(entry["dtype"]), tuple(entry["shape"])
    first, last = entry["data_offsets"]
    if dtype in DTYPES and last - first != math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize:
        raise ValueError(f"{name} has another size than its shape")
    return StoredTensor(name=name, path=path, dtype=dtype, shape=shape, offset=start + first)


def _read(file: Any, tensor: StoredTensor, count: int) -> NDArray[np.floating[Any]]:
    """The next `count` numbers. Halves become float32: exactly, and numpy is slow with halves."""
    dtype = np.dtype(DTYPES[tensor.dtype])
    try:
        content = file.read(count * dtype.itemsize)
    except OSError as error:
        raise _cannot_open(tensor.path, error) from error
    if len(content) < count * dtype.itemsize:
        raise UserError(
            f"{tensor.path} became shorter while it was read: wait until it is written, and try "
            f"again."
        )
    numbers: NDArray[Any] = np.frombuffer(content, dtype)
    if tensor.dtype == "BF16":
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float32) if tensor.dtype == "F16" else numbers


def _opened(path: Path) -> Any:
    try:
        return open_file(path)
    except OSError as error:
        raise _cannot_open(path, error) from error
    except DamagedFileError as error:
        raise UserError(f"{error}: name a safetensors file.") from error


def _cannot_open(path: Path, error: OSError) -> UserError:
    return UserError(
        f"Weights are read from a file, and {path} cannot be opened ({error.strerror}): check the "
        f"path."
    )


def _json(path: Path) -> Mapping[str, Any]:
    """The object in a small file. Raises UserError for any other content."""
    try:
        with _opened(path) as file:
            content = file.read(LONGEST_JSON + 1)
        value = json.loads(content) if len(content) <= LONGEST_JSON else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UserError(
            f"{path} must be one JSON object of at most {LONGEST_JSON:,} bytes: get it again, or "
            f"remove it."
        )
    return value


def _config(path: Path) -> Mapping[str, Any]:
    """That of the text model, where there is a model of images around it."""
    if not path.exists():
        return {}
    config = _json(path)
    inner = config.get("text_config")
    return {**config, **inner} if isinstance(inner, dict) else config


def _weight_map(index: Path) -> dict[str, str]:
    """The file of each tensor, by name."""
    files = _json(index).get("weight_map")
    if not isinstance(files, dict) or not all(map(_is_plain, files.values())):
        raise UserError(
            f"An index has a weight_map from tensors to files beside it, and {index} has another "
            f"one: get it again, or "
            "name the file with the head."
        )
    return files


def _is_plain(name: object) -> bool:
    return isinstance(name, str) and Path(name).name == name and name.endswith(".safetensors")


def unique(names: Iterable[str], ending: str) -> str | None:
    """The name that is this one; else the only one that ends in it after a dot, as in
    "transformer.wte.weight"."""
    listed = list(names)
    if ending in listed:
        return ending
    ending_so = [name for name in listed if name.endswith(f".{ending}")]
    return ending_so[0] if len(ending_so) == 1 else None
