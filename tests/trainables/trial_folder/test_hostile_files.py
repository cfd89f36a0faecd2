"""Files that nobody wrote by accident: each is refused in a sentence, at once, and nothing outside is touched."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainables.trial_folder.checkpoint import Checkpoints, load_tensors
from trainables.trial_folder.files import DamagedFileError, locked, set_aside
from trainables.trial_folder.folder import SupersededError, TrialFolder
from trainables.trial_folder.outcome import EpochMetrics, TrialOutcome
from trainables.trial_folder.vector import read_vector

EPOCH = EpochMetrics(epoch=1, tokens=1, train_loss=1.0, valid_loss=1.0, averaging=False, seconds=1.0)
SOUND: dict[str, Any] = TrialOutcome(
    trial_id="a", state="done", epochs=(EPOCH,), measurements={"perplexity@1": {"test_perplexity": 2.0}}
).model_dump(mode="json", exclude={"checksums"})
"""As version 1 wrote it, without a checksum: what it says is all that can be looked at."""

WORDS = json.dumps({"next": "tons", "probability": 0.5, "rank": 1, "top": [["tons", 0.5]]})


def changed(**changes: Any) -> bytes:
    return json.dumps({**SOUND, **changes}).encode()


def epochs(**changes: Any) -> bytes:
    return changed(epochs=[{**SOUND["epochs"][0], **changes}])


def measured(*tables: tuple[str, dict[str, object]]) -> bytes:
    return changed(measurements=dict(tables))


RESULTS = {
    "a bad name": measured(("perplexity", {"x": 1})),
    "a bad version": measured(("perplexity@" + "9" * 30, {"x": 1})),
    "a name that moves the cursor": measured(("\x1b[2J@1", {"x": 1})),
    "a huge integer": measured(("perplexity@1", {"x": 10**40})),
    "an integer beyond Python's own limit": b'{"trial_id": "a", "state": "done", "measurements": {"x@1": {"y": %b}}}'
    % (b"9" * 10_000),
    "a number in words": measured(("perplexity@1", {"test_perplexity": "low"})),
    "a number that is true": measured(("spectrum@1", {"effective_rank_1e-3": True})),
    "words that are none": measured(("top_k@1", {"top_k even 1": "{}"})),
    "words of a context without a number": measured(("top_k@1", {"top_k even": WORDS})),
    "a metric called like a setting": measured(("x@1", {"seed": 1})),
    "a metric called like an inner setting": measured(("x@1", {"training.epochs": 1})),
    "a metric called like a column": measured(("x@1", {"name": "x"})),
    "a doubled metric": measured(("perplexity@1", {"x": 1}), ("spectrum@1", {"x": 1})),
    "not a number": changed().replace(b"2.0", b"NaN"),
    "infinity": changed().replace(b"2.0", b"1e999"),
    "a table for a number": measured(("perplexity@1", {"x": {"y": 1}})),
    "a list": b"[]",
    "a number": b"1",
    "an unknown state": changed(state="running"),
    "an unknown entry": changed(more=1),
    "an epoch twice": changed(epochs=[SOUND["epochs"][0]] * 2),
    "a huge epoch": epochs(epoch=2**40),
    "a huge count": epochs(tokens=2**70),
    "a negative rank": epochs(press_rank=-1),
    "a loss that is none": changed(epochs=[{**SOUND["epochs"][0], "valid_loss": "low"}]),
    "no UTF-8": changed(cause="x").replace(b'"x"', b'"\xff"'),
    "half a character": changed(cause="x").replace(b'"x"', b'"\\ud800"'),
    "a deep nest": b'{"trial_id":' * 100_000,
    "nothing": b"",
    "zeros": bytes(4096),
    "another trial's": changed(trial_id="b"),
    "no trial's": changed(trial_id=None),
}


def test_what_they_are_made_from_is_sound(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(changed())
    assert TrialFolder(tmp_path, "a").outcome() == TrialOutcome.model_validate(SOUND)
    (tmp_path / "result.json").write_bytes(measured(("top_k@1", {"top_k even 1": WORDS})))
    assert TrialFolder(tmp_path, "a").outcome() is not None


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_cannot_be_recorded_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "result.json").write_bytes(RESULTS[name])
    folder = TrialFolder(tmp_path, "a")
    with pytest.raises(DamagedFileError, match=r"result\.json is"):
        folder.result()
    assert folder.outcome() is None
    assert folder.set_aside_result().read_bytes() == RESULTS[name]


@pytest.mark.parametrize("metrics", [{"test_perplexity": "low"}, {"seed": 1}, {"name": "x"}, {"x": 10**40}])
def test_a_later_measurement_that_cannot_be_recorded_is_refused(tmp_path: Path, metrics: dict[str, object]) -> None:
    content = {"trial_id": "a", "name": "top_k@1", "metrics": {"x": 1}, "has_spectrum": False}
    file = tmp_path / "measurement-top_k@1.json"
    folder = TrialFolder(tmp_path, "a")
    file.write_text(json.dumps(content))
    assert folder.measurement("top_k@1") == ({"x": 1}, None)
    file.write_text(json.dumps({**content, "metrics": metrics}))
    with pytest.raises(DamagedFileError, match="is no complete measurement"):
        folder.measurement("top_k@1")


def link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_in_a_circle(path: Path) -> None:
    path.symlink_to(path)


def full_folder(path: Path) -> None:
    path.mkdir()
    (path / "x").touch()


def read_result(folder: TrialFolder) -> None:
    if not os.path.lexists(folder.path / "result.json"):
        (folder.path / "result.json").write_bytes(measured(("spectrum@1", {"x": 1})))
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
def test_a_checkpoint_or_fence_that_is_no_file_is_passed_over(tmp_path: Path, put: Callable[[Path], None]) -> None:
    notes: list[str] = []
    folder = TrialFolder(tmp_path, "a", notes.append)
    folder.take_over()
    Checkpoints(folder).save(1, {"x": torch.ones(2)}, {"progress": 1})
    put(folder.checkpoint(2))
    newest = Checkpoints(folder).latest("cpu")
    assert newest is not None and newest[1]["progress"] == 1
    [note] = notes
    assert "checkpoint-000000000002.safetensors is no file: it goes on from the checkpoint before" in note
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


def test_a_bit_that_flips_in_the_name_of_the_checksum_does_not_make_a_file_of_version_1(tmp_path: Path) -> None:
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
    """As a disk that fails in places leaves it: nothing of it can be opened, and its name is there."""
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
    for path in (folder.checkpoint(5), *(folder.path / name for name in ("measurement-a@1.json", "result.json"))):
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


def test_an_exception_may_say_anything(tmp_path: Path) -> None:
    cause = TrialOutcome(trial_id="a", state="failed", cause="a\0b\x1b[31m\ud800é").cause
    assert cause == "a?b?[31m?é"
    TrialFolder(tmp_path, "a").write_result(TrialOutcome(trial_id="a", state="failed", cause=cause), None)
