from __future__ import annotations

import contextlib
import io
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from trainables.trial_folder import (
    Checkpoints,
    DamagedFileError,
    SupersededError,
    TrialFolder,
    TrialOutcome,
    load_tensors,
    locked,
)
from trainables.trial_folder.files import sealed, set_aside, sha256
from trainables.trial_folder.vector import read_vector


def link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_in_a_circle(path: Path) -> None:
    path.symlink_to(path)


def full_folder(path: Path) -> None:
    path.mkdir()
    (path / "x").touch()


PUTS = [os.mkfifo, link_to_zeros, link_in_a_circle, full_folder]
every_put = pytest.mark.parametrize("put", PUTS)


def read_result(folder: TrialFolder) -> None:
    if not os.path.lexists(folder.path / "result.json"):
        outcome = TrialOutcome(trial_id="a", state="done", measurements={"spectrum@1": {"x": 1}})
        (folder.path / "result.json").write_bytes(sealed(outcome.model_dump_json(indent=1)))
    folder.result()


READERS: dict[str, Callable[[TrialFolder], object]] = {
    "result.json": read_result,
    "spectrum.npy": read_result,
    "kept.safetensors": lambda folder: load_tensors(folder.kept_weights),
    "measurement-top_k@1.json": lambda folder: folder.measurement("top_k@1"),
}


@pytest.mark.timeout(20)
@every_put
@pytest.mark.parametrize("name", READERS)
def test_non_files_are_replaced(tmp_path: Path, name: str, put: Callable[[Path], None]) -> None:
    folder = TrialFolder(tmp_path, "a")
    for _ in range(2):
        put(tmp_path / name)
        with pytest.raises(DamagedFileError, match=f"{name} is not a regular file"):
            READERS[name](folder)
        set_aside(tmp_path / name)


@pytest.mark.timeout(20)
@every_put
def test_odd_checkpoint_is_skipped(tmp_path: Path, put: Callable[[Path], None]) -> None:
    notes: list[str] = []
    folder = TrialFolder(tmp_path, "a", notes.append)
    folder.take_over()
    Checkpoints(folder).save(1, {"x": torch.ones(2)}, {"progress": 1})
    put(folder.checkpoint(2))
    newest = Checkpoints(folder).latest("cpu")
    assert newest is not None and newest[1]["progress"] == 1
    [note] = notes
    assert "checkpoint-000000000002.safetensors is not a regular file" in note
    (tmp_path / "worker").unlink()
    put(tmp_path / "worker")
    with pytest.raises(SupersededError):
        folder.check_fence()


@pytest.mark.timeout(20)
def test_links_are_never_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    folder = TrialFolder(tmp_path / "trial", "a")
    folder.path.mkdir()
    for name in ("lock", "error.log", "result.json", "worker", "log.txt"):
        (folder.path / name).symlink_to(outside)
    with pytest.raises(OSError, match="symbolic links"), folder.locked():
        pass
    folder.take_over()
    folder.write_result(TrialOutcome(trial_id="a", state="done"), None)
    try:
        raise RuntimeError("the cause")
    except RuntimeError as error:
        folder.failure_cause(error, ())
    assert "the cause" in folder.error_log.read_text()
    assert outside.read_text() == "precious"
    for path in (folder.path / "lock", folder.log_file):
        path.unlink()
        os.mkfifo(path)
    with contextlib.suppress(OSError), locked(folder.path):
        pass
    folder.log("into a pipe")
    folder.log_file.unlink()
    folder.log("into a \ud800 file")
    assert folder.log_file.read_text().endswith(" into a ? file\n")


def header(description: str) -> bytes:
    text = description.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(24)


def npy(values: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array(values))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        npy([3.0, 1.0])[:-1],
        npy([[1.0]]),
        npy([np.nan]),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999,), }"),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }"),
    ],
)
def test_invalid_vector_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"not a vector|NaN"):
        read_vector(tmp_path / "x.npy", sha256(content))


def tensors(metadata: object, length: int | None = None, **changes: object) -> bytes:
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes
    text = json.dumps({"__metadata__": metadata, "x": tensor}).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(8)


STATE = {"state": json.dumps({"trial_id": "a"})}


@pytest.mark.parametrize(
    "content",
    [
        tensors(STATE),
        tensors(STATE, length=2**63),
        tensors(STATE, shape=[2**62, 4]),
        tensors({}),
        tensors({"state": "["}),
        tensors({**STATE, "sha256": "0" * 64}),
        tensors({"state": json.dumps({"trial_id": "a", "sha256": "0" * 64})}),
        b"",
    ],
)
def test_foreign_weights_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"x\.safetensors (is|does) not"):
        load_tensors(tmp_path / "x.safetensors")


def test_any_flipped_bit_is_detected(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, "a")
    Checkpoints(folder).save(1, {"x": torch.ones(2)}, {"progress": 1})
    content = folder.checkpoint(1).read_bytes()
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        folder.checkpoint(1).write_bytes(flipped)
        with pytest.raises(DamagedFileError):
            load_tensors(folder.checkpoint(1))


@every_put
def test_odd_files_are_forgotten(tmp_path: Path, put: Callable[[Path], None]) -> None:
    folder = TrialFolder(tmp_path / "a", "a")
    folder.path.mkdir()
    outside = tmp_path / "outside"
    full_folder(outside)
    put(folder.checkpoint(1))
    for step in (2, 3, 4):
        Checkpoints(folder).save(step, {"x": torch.ones(2)}, {"progress": step})
    assert folder.checkpoints() == [folder.checkpoint(3), folder.checkpoint(4)]
    for name in ("checkpoint-5.safetensors", "measurement-a@1.json", "result.json"):
        put(folder.path / name)
        put(set_aside(folder.path / name).with_name(name))
    (folder.path / ".kept.safetensors.1-01234567.tmp").touch()
    (folder.path / "checkpoint-link").symlink_to(outside)
    full_folder(folder.path / "measurement-links")
    (folder.path / "measurement-links" / "link").symlink_to(outside)
    folder.forget_checkpoints()
    folder.forget_measurements()
    folder.forget_result()
    assert [path.name for path in folder.path.iterdir()] == ["result.json.unusable"]
    assert [path.name for path in outside.iterdir()] == ["x"]
