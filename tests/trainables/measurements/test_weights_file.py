"""Tensors of safetensors files: exactly the numbers, in blocks; and a sentence for whatever is no
such file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.support.checkpoints import (
    DTYPES,
    EMBEDDING,
    HEAD,
    NORM,
    head,
    write_checkpoint,
    write_shards,
)
from trainables.errors import UserError
from trainables.measurements import weights_file
from trainables.measurements.weights_file import open_checkpoint, unique

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def with_header(header: Any, data: bytes = bytes(24)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_number_is_read_as_it_was_written(
    tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights_file, "BLOCK_BYTES", 8 * 8 * 13)  # blocks of 13 rows of 60
    matrix, gain = head(decay=1e-4), np.linspace(-2, 2, 8)
    stored = open_checkpoint(
        write_checkpoint(tmp_path / "w.safetensors", {HEAD: matrix, "g": gain}, dtype=dtype)
    )
    blocks = list(stored.tensors[HEAD].blocks())
    exact = torch.from_numpy(matrix).to(DTYPES[dtype]).to(torch.float64).numpy()
    assert [len(block) for block in blocks] == [13, 13, 13, 13, 8]
    assert (np.concatenate(blocks) == exact).all()
    assert blocks[0].dtype == ("float64" if dtype == "float64" else "float32")
    assert (
        stored.tensors["g"].vector()
        == torch.from_numpy(gain).to(DTYPES[dtype]).to(torch.float64).numpy()
    ).all()


def test_an_index_a_shard_beside_it_and_the_folder_are_the_same_checkpoint(tmp_path: Path) -> None:
    index = write_shards(
        tmp_path, {ONE: {EMBEDDING: head(), NORM: np.ones(8)}, TWO: {HEAD: head(seed=1)}}
    )
    for path in (index, tmp_path, tmp_path / ONE, tmp_path / TWO):
        stored = open_checkpoint(path)
        assert {*stored.tensors} == {EMBEDDING, NORM, HEAD} and not stored.is_shard
        assert (
            np.concatenate(list(stored.tensors[HEAD].blocks())) == head(seed=1).astype(np.float32)
        ).all()
    (tmp_path / TWO).unlink()
    stored = open_checkpoint(index)
    assert {*stored.tensors} == {EMBEDDING, NORM}
    with pytest.raises(UserError, match=f"{HEAD} lies in {TWO}, which is not beside"):
        stored.tensor(HEAD)
    index.unlink()
    assert open_checkpoint(tmp_path / ONE).is_shard


def test_a_wrong_name_is_answered_with_a_near_one_and_the_matrices(tmp_path: Path) -> None:
    held = {HEAD: head(), "h.0.bias": np.ones(9), "h.0.weight": head(5, 4)}
    stored = open_checkpoint(write_checkpoint(tmp_path / "w.safetensors", held))
    with pytest.raises(
        UserError,
        match=r"did you mean lm_head\.weight.*are lm_head\.weight \(60 x 8\), h\.0\.weight",
    ):
        stored.tensor("lm_heads.weight")
    with pytest.raises(UserError, match=r"h\.0\.bias \(9\) of .* choose another one with --tensor"):
        next(stored.tensors["h.0.bias"].blocks())
    many = {f"h.{i}.weight": head(i + 1, 2) for i in range(20)}
    with pytest.raises(UserError, match=r"h\.19\.weight \(20 x 2\), .* and 8 smaller ones"):
        open_checkpoint(write_checkpoint(tmp_path / "w.safetensors", many)).tensor("nothing")


def entry(**changes: Any) -> dict[str, Any]:
    return {"a": {"dtype": "F16", "shape": [3, 4], "data_offsets": [0, 24], **changes}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 100,
        b"PK\x03\x04" + bytes(100),
        with_header(entry(), bytes(23)),
        with_header(entry(), bytes(25)),
        with_header(entry(data_offsets=[0, 20])),
        with_header(entry(data_offsets=[-24, 0])),
        with_header(entry(shape=[2**40, 2**40])),
        with_header(entry(shape=[-3, -4])),
        with_header(entry(shape=["3", 4])),
        with_header(entry(dtype="F17")),
        with_header({"a": 3}),
        with_header([]),
        with_header(b"[" * 100_000),
        with_header(b'{"a":' * 100_000),
        with_header(b'{"\\ud800":' + json.dumps(entry()["a"]).encode() + b"}"),
    ],
)
def test_a_hostile_header_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(
        UserError, match=r"must be a whole safetensors file, and is damaged or none"
    ):
        open_checkpoint(path)


def test_a_header_of_any_length_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    with path.open("wb") as file:
        file.write((2**30).to_bytes(8, "little"))
        file.truncate(2**31)  # a file with a hole, which takes no disk
    with pytest.raises(
        UserError, match=r"may have 33,554,432 bytes, and that of .* has 1,073,741,824"
    ):
        open_checkpoint(path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({HEAD: "../other.safetensors"}, "weight_map from tensors to files beside it"),
        ({HEAD: "/etc/passwd"}, "weight_map"),
        ({HEAD: 3}, "weight_map"),
        ([], "weight_map"),
        (None, "must be one JSON object"),
    ],
)
def test_an_index_leads_nowhere_else(tmp_path: Path, files: Any, message: str) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text("[" * 100_000 if files is None else json.dumps({"weight_map": files}))
    with pytest.raises(UserError, match=message):
        open_checkpoint(index)


@pytest.mark.parametrize("name", ["model.bin", "model.pt", "model.pth", "model.ckpt", "model.pkl"])
def test_what_could_run_code_is_not_opened(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"can run code when it is opened: .*save_file"):
        open_checkpoint(tmp_path / name)


def test_what_is_no_file_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        open_checkpoint(tmp_path / "none.safetensors")
    os.mkfifo(tmp_path / "w.safetensors")
    with pytest.raises(UserError, match="damaged or none"):
        open_checkpoint(tmp_path / "w.safetensors")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="has neither: name one of its files"):
        open_checkpoint(tmp_path / "folder")
    write_checkpoint(tmp_path / "folder" / "any.safetensors", {HEAD: head()})
    assert [*open_checkpoint(tmp_path / "folder").tensors] == [HEAD]
    (tmp_path / "folder" / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json must be one JSON object"):
        open_checkpoint(tmp_path / "folder")


def test_a_name_is_taken_alone_or_at_the_end_of_one() -> None:
    assert unique(["a.wte.weight", "wte.weight"], "wte.weight") == "wte.weight"
    assert unique(["a.wte.weight", "awte.weight"], "wte.weight") == "a.wte.weight"
    assert unique(["a.wte.weight", "b.wte.weight"], "wte.weight") is None
