"""Tests that any file gives a correct result or a one-line error: no traceback, hang or write."""

from __future__ import annotations

import io
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from safetensors.torch import save

from tests.security.conftest import Cases, check_answer, in_time
from tests.support.hostile import CONFIGS, damaged, spoiled, texts, values
from tests.support.writes import outside, written
from trainables.__main__ import main as train_one
from trainables.config import read_config
from trainables.trial_folder import DamagedFileError, load_tensors, save_tensors

ENDLESS = ("[" * 100_000, '{"a":' * 100_000, "9" * 5000, "-" * 5000, '"\\ud800"')
SHAPES = (
    "(3, 4)",
    "(-1, 4)",
    "(9223372036854775807, 2)",
    "()",
    "(3,)",
    "3",
    "(True, 2)",
    "(1e3, 2)",
)
HEADERS = ("-" * 9000 + "1", "(" * 3000, "{" * 100, "[" * 500, "None", "{}", "not " * 2000 + "1")
DTYPES = ("<f8", "|O", "<U3", "V8", ">f2", "f", "", "<M8[s]", "<f99")
SPLITS = ("train", "valid", "test")
as_bytes = texts.map(lambda text: text.encode(errors="replace"))


def in_json(*originals: Any) -> st.SearchStrategy[bytes]:
    return (spoiled(originals) | values).map(lambda value: json.dumps(value).encode())


def with_headers(tensors: bytes) -> st.SearchStrategy[bytes]:
    end = 8 + int.from_bytes(tensors[:8], "little")
    spoiled_headers = in_json(json.loads(tensors[8:end]))
    return spoiled_headers.map(lambda text: len(text).to_bytes(8, "little") + text + tensors[end:])


@pytest.mark.chaos(60, 3_000)
def test_config_is_read_or_refused(
    tmp_path: Path, every_case: Cases, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"

    def check(content: bytes) -> None:
        file.write_bytes(content)
        with written() as paths:
            # Zero threads are refused after the config was read, so nothing is trained.
            assert train_one([str(file), "--threads", "0"]) == 2
        error = capsys.readouterr().err
        assert outside(paths) == [] and error.startswith("error: ")
        if "--threads: must be" in error:
            config = read_config(json.loads(content))
            again = read_config(json.loads(config.model_dump_json()))
            assert again.trial_id == config.trial_id

    sound = tuple(json.dumps(config).encode() for config in CONFIGS)
    every_case(in_json(*CONFIGS) | damaged(sound), check, map(str.encode, ENDLESS))


@st.composite
def npy_files(draw: Any) -> bytes:
    built = "{{'descr': {!r}, 'fortran_order': {!r}, 'shape': {}, }}".format
    dtypes, orders = st.sampled_from(DTYPES) | texts, st.booleans() | values
    headers = st.builds(built, dtypes, orders, st.sampled_from(SHAPES))
    header = draw(headers | st.sampled_from(HEADERS) | texts).encode("latin1", errors="replace")
    size = len(header[:60_000]).to_bytes(2, "little")
    return b"\x93NUMPY\x01\x00" + size + header[:60_000] + draw(st.binary(max_size=100))


@pytest.mark.chaos(60, 2_500)
def test_matrix_is_measured_or_refused(tmp_path: Path, every_case: Cases) -> None:
    file = tmp_path / "matrix.npy"
    matrix, sound = np.random.default_rng(0).normal(size=(6, 4)), []
    for array in (matrix, matrix.astype(np.float32), np.asfortranarray(matrix), np.zeros((3, 3))):
        np.save(stream := io.BytesIO(), array)
        sound.append(stream.getvalue())

    def check(content: bytes) -> None:
        file.write_bytes(content)
        answer = check_answer("rank", file, "--format", "json")
        if answer.returncode == 0:
            (ranks,) = json.loads(answer.stdout)["files"]
            exact = np.load(file, allow_pickle=False).astype(np.float64)
            assert ranks["rank_rows"] * ranks["rank_columns"] == exact.size
            assert ranks["sigma_max"] == pytest.approx(np.linalg.norm(exact, 2), rel=1e-6)

    every_case(damaged(tuple(sound)) | npy_files(), check)


@pytest.mark.chaos(25, 2_000)
def test_weights_are_measured_or_refused(tmp_path: Path, every_case: Cases) -> None:
    names = ("w.safetensors", "w.safetensors.index.json", "config.json")
    file, index, config = (tmp_path / name for name in names)
    matrix = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    tensors = {"lm_head.weight": matrix.half(), "b": matrix.bfloat16()}
    sound = save(tensors)
    indexed = {"weight_map": dict.fromkeys(tensors, file.name)}
    gemma = {"model_type": "gemma", "tie_word_embeddings": True, "final_logit_softcapping": 30.0}
    spoiled_json = in_json(indexed, gemma)

    def check(case: tuple[bytes, bytes, bytes, str]) -> None:
        for path, content in zip((file, index, config), case[:3], strict=True):
            path.write_bytes(content)
        for checkpoint in (file, index):
            tensor = ["--tensor", case[3]] if case[3] else []
            answer = check_answer("rank", checkpoint, *tensor, "--format", "json")
            if answer.returncode == 0 and case[0] == sound:
                (ranks,) = json.loads(answer.stdout)["files"]
                exact = tensors[ranks["tensor"]].double().numpy()
                assert ranks["sigma_max"] == pytest.approx(np.linalg.norm(exact, 2), rel=1e-6)

    words = texts.filter(lambda text: text.isprintable() and not text.startswith("-"))
    damages = damaged((sound,)) | with_headers(sound)
    good_index = st.just(json.dumps(indexed).encode())
    every_case(
        st.tuples(damages, good_index, st.just(b"{}"), st.just(""))
        | st.tuples(st.just(sound), spoiled_json, spoiled_json, st.sampled_from(["", "b"]) | words),
        check,
    )


@pytest.mark.chaos(60, 2_000)
def test_checkpoint_is_read_or_skipped(tmp_path: Path, every_case: Cases) -> None:
    file = tmp_path / "checkpoint.safetensors"
    save_tensors(file, {"weight": torch.arange(6.0)}, {"trial_id": "a", "n": [1]})
    sound = file.read_bytes()

    def check(content: bytes) -> None:
        file.write_bytes(content)
        with written() as paths, suppress(DamagedFileError):
            load_tensors(file)
            assert content == sound
        assert outside(paths) == []

    every_case(damaged((sound,)) | with_headers(sound), check)


@pytest.mark.chaos(12, 1_000)
def test_corpus_is_planned_or_refused(tmp_path: Path, every_case: Cases) -> None:
    folder = tmp_path / "corpora" / "mine"
    folder.mkdir(parents=True)
    contents = st.binary(max_size=60) | as_bytes | st.just(b"a b c\n" * 400)

    def check(splits: tuple[bytes, ...]) -> None:
        for split, content in zip(SPLITS, splits, strict=True):
            (folder / f"{split}.txt").write_bytes(content)
        check_answer("corpus", "check", folder)
        check_answer("gss_grid", "--scale", "smoke", "--dry-run", "--corpus", folder)

    every_case(st.tuples(contents, contents, contents), check)


@pytest.mark.chaos(12, 1_000)
def test_contexts_are_accepted_or_refused(tmp_path: Path, every_case: Cases) -> None:
    contexts, benchmarks = tmp_path / "contexts.json", tmp_path / "benchmarks"
    benchmarks.mkdir()
    first = {"last_token_index": 3, "group": "mine", "number": 1, "next_token": "a"}
    listed = [first, {"last_token_index": 9}]

    def check(case: tuple[bytes, bytes]) -> None:
        contexts.write_bytes(case[0])
        (benchmarks / "EN-MINE.txt").write_bytes(case[1])
        check_answer("qualitative", "--scale", "smoke", "--dry-run", "--contexts", contexts)
        check_answer("word_similarity", "--scale", "smoke", "--dry-run", "--benchmarks", benchmarks)

    pairs = as_bytes | damaged((b"cat dog 1\nking queen 0.5\n",))
    every_case(st.tuples(in_json(listed) | damaged((json.dumps(listed).encode(),)), pairs), check)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_endless_text_is_refused(tmp_path: Path, kind: str) -> None:
    for split in SPLITS:
        (tmp_path / f"{split}.txt").write_text("a b c\n" * 400)
    (tmp_path / "valid.txt").unlink()
    if kind == "pipe":
        os.mkfifo(tmp_path / "valid.txt")
    else:
        (tmp_path / "valid.txt").symlink_to("/dev/zero")
    with in_time():
        assert check_answer("corpus", "check", tmp_path).returncode == 2
