"""Files that nobody wrote by accident: each is refused in a sentence, at once, and nothing outside
is touched."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from trainables.trial_folder.checkpoint import Checkpoints, load_tensors
from trainables.trial_folder.files import DamagedFileError, locked, set_aside
from trainables.trial_folder.folder import SupersededError, TrialFolder
from trainables.trial_folder.outcome import TrialOutcome
from trainables.trial_folder.vector import read_vector


def link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_in_a_circle(path: Path) -> None:
    path.symlink_to(path)


def full_folder(path: Path) -> None:
    path.mkdir()
    (path / "x").touch()


def read_result(folder: TrialFolder) -> None:
    if not os.path.lexists(folder.path / "result.json"):
        outcome = TrialOutcome(trial_id="a", state="done", measurements={"spectrum@1": {"x": 1}})
        (folder.path / "result.json").write_text(outcome.model_dump_json(exclude={"checksums"}))
    folder.result()


READERS: dict[str, Callable[[TrialFolder], object]] = {
    "result.json": read_result,
    "spectrum.npy": read_result,
    "kept.safetensors": lambda folder: load_tensors(folder.kept_weights),
    "measurement-top_k@1.json": lambda folder: folder.measurement("top_k@1"),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("put", [os.mkfifo, link_to_zeros, link_in_a_circle, full_folder])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_refused_without_waiting_and_makes_room(
    tmp_path: Path, name: str, put: Callable[[Path], None]
) -> None:
    folder = TrialFolder(tmp_path, "a")
    for _ in range(2):
        put(tmp_path / name)
        with pytest.raises(DamagedFileError, match=f"{name} is no file"):
            READERS[name](folder)
        set_aside(tmp_path / name)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("put", [os.mkfifo, link_to_zeros, link_in_a_circle, full_folder])
def test_a_checkpoint_or_fence_that_is_no_file_is_passed_over(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    notes: list[str] = []
    folder = TrialFolder(tmp_path, "a", notes.append)
    folder.take_over()
    Checkpoints(folder).save(1, {"x": torch.ones(2)}, {"progress": 1})
    put(folder.checkpoint(2))
    newest = Checkpoints(folder).latest("cpu")
    assert newest is not None and newest[1]["progress"] == 1
    [note] = notes
    assert (
        "checkpoint-000000000002.safetensors is no file: it goes on from the checkpoint before"
        in note
    )
    (tmp_path / "worker").unlink()
    put(tmp_path / "worker")
    with pytest.raises(SupersededError):
        folder.check_fence()


def test_a_link_in_place_of_the_lock_or_a_file_is_never_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    folder = TrialFolder(tmp_path / "trial", "a")
    folder.path.mkdir()
    for name in ("lock", "error.log", "result.json", "worker"):
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


@pytest.mark.timeout(20)
def test_a_lock_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    with contextlib.suppress(OSError), locked(tmp_path):
        pass


@pytest.mark.timeout(20)
def test_a_log_is_written_to_no_pipe_and_through_no_link(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, "0" * 64)
    os.mkfifo(folder.log_file)
    folder.log("into a pipe")
    folder.log_file.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("of somebody else\n")
    folder.log_file.symlink_to(elsewhere)
    folder.log("through a link")
    assert elsewhere.read_text() == "of somebody else\n"
    folder.log_file.unlink()
    folder.log("into a \ud800 file")
    assert folder.log_file.read_text().endswith(" into a ? file\n")


def header(description: str) -> bytes:
    text = description.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(24)


@pytest.mark.parametrize(
    "content",
    [
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999,), }"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }"),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }"),
        header("{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }"),
        header("(" * 110),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(200),
    ],
)
def test_a_vector_with_a_made_up_header_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(DamagedFileError, match="no vector of float64 values"):
        read_vector(tmp_path / "x.npy")


def tensors(head: object, data: bytes = bytes(8), length: int | None = None) -> bytes:
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


STATE = json.dumps({"trial_id": "a"})
"""Of weights that version 1 kept."""


def one(**changes: object) -> dict[str, object]:
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes
    return {"__metadata__": {"state": STATE}, "x": tensor}


@pytest.mark.parametrize(
    "content",
    [
        tensors(one(), length=2**63),
        tensors(one(), length=2**64 - 1),
        tensors(one(), length=10**8),
        tensors(one(shape=[-2])),
        tensors(one(shape=[2**62, 4])),
        tensors(one(shape=[2**40])),
        tensors(one(dtype="O")),
        tensors(one(data_offsets=[0, 2**60])),
        tensors(one(data_offsets=[8, 0])),
        tensors({**one(), "__metadata__": {}}),
        tensors({**one(), "__metadata__": {"state": "["}}),
        tensors({**one(), "__metadata__": {"state": "[]"}}),
        tensors({**one(), "__metadata__": {"state": "{}"}}),
        tensors({**one(), "__metadata__": {"state": "[" * 100_000}}),
        tensors({**one(), "__metadata__": {"state": STATE, "sha256": ""}}),
        tensors({**one(), "__metadata__": {"state": STATE, "sha256": "0" * 64}}),
        tensors({**one(), "__metadata__": {"state": STATE, "sha257": "0" * 64}}),
        b"",
        bytes(8),
        b"\x80\x04\x95",
    ],
)
def test_weights_with_a_made_up_header_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"x\.safetensors is not"):
        load_tensors(tmp_path / "x.safetensors")


def test_a_bit_that_flips_in_the_name_of_the_checksum_does_not_make_a_file_of_version_1(
    tmp_path: Path,
) -> None:
    folder = TrialFolder(tmp_path, "a")
    Checkpoints(folder).save(1, {"x": torch.ones(2)}, {"progress": 1})
    content = folder.checkpoint(1).read_bytes()
    place = content.index(b"sha256")
    for bit in range(8 * len(b"sha256")):
        changed_content = bytearray(content)
        changed_content[place + bit // 8] ^= 1 << bit % 8
        changed_content[-1] ^= 1
        folder.checkpoint(1).write_bytes(changed_content)
        with pytest.raises(DamagedFileError):
            load_tensors(folder.checkpoint(1))


def test_a_checkpoint_that_cannot_be_read_makes_room_for_the_next_ones(tmp_path: Path) -> None:
    """As a disk that fails in places leaves it: nothing of it can be opened, and its name is
    there."""
    notes: list[str] = []
    folder = TrialFolder(tmp_path, "a", notes.append)
    for step in (5, 6):
        folder.checkpoint(step).symlink_to(tmp_path / "nowhere")
    assert Checkpoints(folder).latest("cpu") is None
    assert len(notes) == 2
    for step in (1, 2, 3):
        Checkpoints(folder).save(step, {"x": torch.ones(2)}, {"progress": step})
    assert folder.checkpoints() == [folder.checkpoint(2), folder.checkpoint(3)]


@pytest.mark.parametrize("put", [os.mkfifo, link_to_zeros, link_in_a_circle, full_folder])
def test_what_is_no_file_goes_with_the_checkpoints_and_measurements(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    folder = TrialFolder(tmp_path / "a", "a")
    folder.path.mkdir()
    outside = tmp_path / "outside"
    full_folder(outside)
    put(folder.checkpoint(1))
    for step in (2, 3, 4):
        Checkpoints(folder).save(step, {"x": torch.ones(2)}, {"progress": step})
    assert folder.checkpoints() == [folder.checkpoint(3), folder.checkpoint(4)]
    for path in (
        folder.checkpoint(5),
        *(folder.path / name for name in ("measurement-a@1.json", "result.json")),
    ):
        put(path)
        put(set_aside(path).with_name(path.name))
    (folder.path / "checkpoint-link").symlink_to(outside)
    full_folder(folder.path / "measurement-links")
    (folder.path / "measurement-links" / "link").symlink_to(outside)
    folder.forget_checkpoints()
    folder.forget_measurements()
    folder.forget_result()
    assert [path.name for path in folder.path.iterdir()] == ["result.json.unusable"]
    assert [path.name for path in outside.iterdir()] == ["x"]


def test_what_they_are_made_from_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(tensors(one()))
    weights, state = load_tensors(tmp_path / "x.safetensors")
    assert (weights["x"].tolist(), state) == ([0.0, 0.0], {"trial_id": "a"})
