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
from trainables.measurements.weights_file import open_checkpoint

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def with_header(header: Any, data: bytes = bytes(24)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_are_read_exactly(
    tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights_file, "BLOCK_BYTES", 8 * 8 * 13)  # blocks of 13 rows of 60
    tensors = {HEAD: head(decay=1e-4), "g": np.linspace(-2, 2, 8)}
    path = write_checkpoint(tmp_path / "w.safetensors", tensors, dtype=dtype)
    matrix, gain = (open_checkpoint(path).tensor(name) for name in tensors)
    exact_matrix, exact_gain = (
        torch.from_numpy(value).to(DTYPES[dtype]).double().numpy() for value in tensors.values()
    )
    blocks = list(matrix.blocks())
    assert [len(block) for block in blocks] == [13, 13, 13, 13, 8]
    assert (np.concatenate(blocks) == exact_matrix).all() and (gain.vector() == exact_gain).all()
    assert blocks[0].dtype == ("float64" if dtype == "float64" else "float32")


def test_index_shard_and_folder_agree(tmp_path: Path) -> None:
    held = {EMBEDDING: head(), NORM: np.ones(8)}
    index = write_shards(tmp_path, {ONE: held, TWO: {HEAD: head(seed=1)}})
    for path in (index, tmp_path, tmp_path / ONE, tmp_path / TWO):
        stored = open_checkpoint(path)
        assert {*stored.files} == {EMBEDDING, NORM, HEAD} and not stored.is_shard
        blocks = list(stored.tensor(HEAD).blocks())
        assert (np.concatenate(blocks) == head(seed=1).astype(np.float32)).all()
    (tmp_path / TWO).unlink()
    stored = open_checkpoint(index)
    assert stored.tensor(EMBEDDING).shape == (60, 8) and HEAD not in stored.matrices_text
    with pytest.raises(UserError, match=f"{HEAD} is in {TWO}"):
        stored.tensor(HEAD)
    index.unlink()
    assert open_checkpoint(tmp_path / ONE).is_shard


def test_wrong_name_lists_largest_matrices(tmp_path: Path) -> None:
    held = {HEAD: head(), "h.0.bias": np.ones(9), "h.0.weight": head(5, 4)}
    stored = open_checkpoint(write_checkpoint(tmp_path / "w.safetensors", held))
    with pytest.raises(
        UserError, match=r"mean lm_head\.weight.*lm_head\.weight \(60 x 8\), h\.0\.weight"
    ):
        stored.tensor("lm_heads.weight")
    many = {f"h.{i}.weight": head(i + 1, 2) for i in range(20)}
    with pytest.raises(UserError, match=r"h\.19\.weight \(20 x 2\), .* and 8 smaller ones"):
        open_checkpoint(write_checkpoint(tmp_path / "w.safetensors", many)).tensor("nothing")


def entry(**changes: Any) -> dict[str, Any]:
    return {"a": {"dtype": "F16", "shape": [3, 4], "data_offsets": [0, 24], **changes}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        (2**30).to_bytes(8, "little"),
        with_header(entry(), bytes(23)),
        with_header(entry(data_offsets=[0, 20])),
        with_header(entry(shape=[2**40, 2**40])),
        with_header(b"[" * 100_000),
    ],
)
def test_hostile_header(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    if content == (2**30).to_bytes(8, "little"):
        os.truncate(path, 2**31)  # a sparse file, which takes no disk space
    with pytest.raises(UserError, match="not a complete safetensors file"):
        open_checkpoint(path)


@pytest.mark.parametrize(
    "files", [{HEAD: "../other.safetensors"}, {HEAD: "/etc/passwd"}, {HEAD: 3}, []]
)
def test_index_stays_in_its_folder(tmp_path: Path, files: Any) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": files}))
    with pytest.raises(UserError, match="weight_map"):
        open_checkpoint(index)


@pytest.mark.parametrize("name", ["model.bin", "model.pt", "model.pkl"])
def test_pickled_file_is_not_opened(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="run code"):
        open_checkpoint(tmp_path / name)


def test_paths_without_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        open_checkpoint(tmp_path / "none.safetensors")
    os.mkfifo(tmp_path / "w.safetensors")
    with pytest.raises(UserError, match="not a complete"):
        open_checkpoint(tmp_path / "w.safetensors")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(UserError, match="has neither"):
        open_checkpoint(folder)
    write_checkpoint(folder / "model.safetensors", {HEAD: head()})
    assert [*open_checkpoint(folder).files] == [HEAD]
    for text in ("{", "[" * 100_000, "[]"):
        (folder / "config.json").write_text(text)
        with pytest.raises(UserError, match=r"config\.json is not one JSON object"):
            open_checkpoint(folder)
