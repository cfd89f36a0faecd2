"""Whatever stands in a file that somebody sent: a sentence or a right result, no traceback, no
hang, no write."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from safetensors.torch import save

from tests.security.conftest import Cases, in_time
from tests.support.command import sweep
from tests.support.hostile import CONFIGS, damaged, spoiled, texts, values
from tests.support.writes import outside, written
from trainables.__main__ import main as train_one
from trainables.config import read_config
from trainables.trial_folder.checkpoint import load_tensors, save_tensors
from trainables.trial_folder.files import DamagedFileError

NESTED = [
    text.encode()
    for text in ("[" * 100_000, '{"a":' * 100_000, "9" * 5000, "-" * 5000, '"\\ud800"')
]
SHAPES = [
    "(3, 4)",
    "(-1, 4)",
    "(9223372036854775807, 2)",
    "()",
    "(3,)",
    "3",
    "(True, 2)",
    "(1e3, 2)",
]
SPLITS = ("train", "valid", "test")


def refused(answer: Any) -> None:
    """The command said in a sentence why not."""
    assert answer.returncode == 2, answer.stderr
    assert answer.stderr.strip().splitlines()[-1].lower().startswith("error: "), answer.stderr
    assert "Traceback" not in answer.stdout + answer.stderr


@pytest.mark.chaos(60, 3_000)
def test_a_config_is_read_as_what_it_says_or_refused(
    tmp_path: Path, every_case: Cases, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    as_json = (spoiled(CONFIGS) | values | st.lists(values)).map(
        lambda value: json.dumps(value).encode()
    )

    def check(content: bytes) -> None:
        file.write_bytes(content)
        with written() as places:
            # With no thread nothing is trained, and that is said only after the config was read.
            assert train_one([str(file), "--threads", "0"]) == 2
        said = capsys.readouterr().err
        assert outside(places) == []
        assert said.startswith("error: ")
        if "--threads takes a number" in said:
            config = read_config(json.loads(content))
            again = read_config(json.loads(config.canonical_json()))
            assert again.trial_id == config.trial_id

    every_case(as_json | damaged(tuple(json.dumps(config).encode() for config in CONFIGS)), check)


@pytest.mark.parametrize("content", NESTED, ids=range(len(NESTED)))
def test_a_config_that_is_nested_or_long_without_end_is_refused(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_bytes(content)
    assert train_one([str(tmp_path / "config.json"), "--threads", "0"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@st.composite
def npy_files(draw: Any) -> bytes:
    """A true magic and length before any header."""
    header = draw(
        st.builds(
            "{{'descr': {!r}, 'fortran_order': {!r}, 'shape': {}, }}".format,
            st.sampled_from(["<f8", "|O", "<U3", "V8", ">f2", "f", "", "<M8[s]", "<f99"]) | texts,
            st.booleans() | values,
            st.sampled_from(SHAPES),
        )
        | st.sampled_from(
            ["-" * 9000 + "1", "(" * 3000, "{" * 100, "[" * 500, "None", "{}", "not " * 2000 + "1"]
        )
        | texts
    ).encode("latin1", errors="replace")[:60_000]
    return (
        b"\x93NUMPY\x01\x00"
        + len(header).to_bytes(2, "little")
        + header
        + draw(st.binary(max_size=100))
    )


@pytest.mark.chaos(60, 2_500)
def test_a_matrix_is_measured_or_refused(tmp_path: Path, every_case: Cases) -> None:
    file = tmp_path / "matrix.npy"
    matrix = np.random.default_rng(0).normal(size=(6, 4))
    originals = tuple(
        map(npy, (matrix, matrix.astype(np.float32), np.asfortranarray(matrix), np.zeros((3, 3))))
    )

    def check(content: bytes) -> None:
        file.write_bytes(content)
        with written() as places:
            answer = sweep("rank", file, "--format", "json")
        assert outside(places) == []
        if answer.returncode:
            refused(answer)
        else:
            ranks = json.loads(answer.stdout)
            exact = np.load(file, allow_pickle=False).astype(np.float64)
            assert ranks["rank_rows"] * ranks["rank_columns"] == exact.size
            assert ranks["sigma_max"] == pytest.approx(np.linalg.norm(exact, 2), rel=1e-6)

    every_case(damaged(originals) | npy_files(), check)


@pytest.mark.chaos(25, 2_000)
def test_open_weights_are_measured_or_refused(tmp_path: Path, every_case: Cases) -> None:
    file, index, config = (
        tmp_path / "w.safetensors",
        tmp_path / "w.safetensors.index.json",
        tmp_path / "config.json",
    )
    matrix = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    tensors = {
        "lm_head.weight": matrix.half(),
        "model.norm.weight": torch.ones(4),
        "b": matrix.bfloat16(),
    }
    original = save(tensors)
    header = json.loads(original[8 : 8 + int.from_bytes(original[:8], "little")])
    index_json = {"weight_map": dict.fromkeys(tensors, file.name)}
    config_json = {
        "model_type": "gemma",
        "tie_word_embeddings": True,
        "final_logit_softcapping": 30.0,
    }

    def with_header(changed: Any) -> bytes:
        text = json.dumps(changed).encode()
        return len(text).to_bytes(8, "little") + text + original[-112:]

    as_json = st.builds(
        lambda value: json.dumps(value).encode(), spoiled((index_json, config_json)) | values
    )
    damages = damaged((original,)) | (spoiled((header,)) | values).map(with_header)

    def check(case: tuple[bytes, bytes, bytes, str]) -> None:
        content, index_content, config_content, tensor = case
        file.write_bytes(content)
        index.write_bytes(index_content)
        config.write_bytes(config_content)
        for place in (file, index):
            with written() as places:
                answer = sweep(
                    "rank", place, *(["--tensor", tensor] if tensor else []), "--format", "json"
                )
            assert outside(places) == []
            if answer.returncode:
                refused(answer)
            elif content == original:
                ranks = json.loads(answer.stdout)
                exact = tensors[ranks["tensor"]].double().numpy()
                assert ranks["sigma_max"] == pytest.approx(np.linalg.norm(exact, 2), rel=1e-6)

    names = st.sampled_from(["", "b", "lm_head.weight"]) | texts.filter(
        lambda text: text.isprintable()
    )
    whole = st.just(original)
    every_case(
        st.tuples(damages, st.just(json.dumps(index_json).encode()), st.just(b"{}"), st.just(""))
        | st.tuples(whole, as_json, as_json, names.filter(lambda name: not name.startswith("-"))),
        check,
    )


@pytest.mark.chaos(60, 2_000)
def test_a_checkpoint_is_read_or_passed_over(tmp_path: Path, every_case: Cases) -> None:
    file = tmp_path / "checkpoint.safetensors"
    save_tensors(
        file,
        {"weight": torch.arange(6.0).reshape(2, 3), "step": torch.tensor(3)},
        {"trial_id": "a", "n": [1]},
    )
    original = file.read_bytes()
    older = save(
        {"weight": torch.arange(6.0).reshape(2, 3)},
        metadata={"state": json.dumps({"trial_id": "a"})},
    )
    headers = (
        spoiled((json.loads(original[8 : 8 + int.from_bytes(original[:8], "little")]),)) | values
    )

    def with_header(header: Any) -> bytes:
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + original[-32:]

    def check(content: bytes) -> None:
        file.write_bytes(content)
        with written() as places:
            try:
                tensors, state = load_tensors(file)
            except DamagedFileError:
                return
            finally:
                assert outside(places) == []
        length = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:length])
        stated = json.loads(header.pop("__metadata__")["state"])
        assert content == original or (state == stated and state.keys() <= {"trial_id", "progress"})
        assert tensors.keys() == header.keys()
        for name, tensor in tensors.items():
            start, end = header[name]["data_offsets"]
            assert list(tensor.shape) == header[name]["shape"]
            assert (
                tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
                == content[length:][start:end]
            )

    every_case(damaged((original, older)) | headers.map(with_header), check)


@pytest.mark.chaos(12, 1_000)
def test_a_corpus_is_planned_with_or_refused(tmp_path: Path, every_case: Cases) -> None:
    folder = tmp_path / "corpora" / "mine"
    folder.mkdir(parents=True)
    contents = (
        st.binary(max_size=60)
        | texts.map(lambda text: text.encode(errors="replace"))
        | st.just(b"a b c\n" * 400)
    )

    def check(splits: tuple[bytes, ...]) -> None:
        for split, content in zip(SPLITS, splits, strict=True):
            (folder / f"{split}.txt").write_bytes(content)
        for command in (
            ("corpus", "check", folder),
            ("gss_grid", "--scale", "smoke", "--dry-run", "--corpus", folder),
        ):
            with written() as places:
                answer = sweep(*command)
            assert outside(places) == []
            if answer.returncode:
                refused(answer)

    every_case(st.tuples(contents, contents, contents), check)


@pytest.mark.chaos(12, 1_000)
def test_contexts_and_benchmarks_are_taken_or_refused(tmp_path: Path, every_case: Cases) -> None:
    contexts, benchmarks = tmp_path / "contexts.json", tmp_path / "benchmarks"
    benchmarks.mkdir()
    listed = (
        [
            {"last_token_index": 3, "group": "mine", "number": 1, "next_token": "a"},
            {"last_token_index": 9},
        ],
    )
    pairs = texts.map(lambda text: text.encode(errors="replace")) | damaged(
        (b"cat dog 1\nking queen 0.5\n",)
    )

    def check(case: tuple[bytes, bytes]) -> None:
        contexts.write_bytes(case[0])
        (benchmarks / "EN-MINE.txt").write_bytes(case[1])
        for study, option, place in (
            ("qualitative", "--contexts", contexts),
            ("word_similarity", "--benchmarks", benchmarks),
        ):
            with written() as places:
                answer = sweep(study, "--scale", "smoke", "--dry-run", option, place)
            assert outside(places) == []
            if answer.returncode:
                refused(answer)

    as_json = (spoiled(listed) | values).map(lambda value: json.dumps(value).encode())
    every_case(st.tuples(as_json | damaged((json.dumps(listed[0]).encode(),)), pairs), check)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_text_that_never_ends_is_refused(tmp_path: Path, kind: str) -> None:
    for split in SPLITS:
        (tmp_path / f"{split}.txt").write_text("a b c\n" * 400)
    (tmp_path / "valid.txt").unlink()
    if kind == "pipe":
        os.mkfifo(tmp_path / "valid.txt")
    else:
        (tmp_path / "valid.txt").symlink_to("/dev/zero")
    with in_time():
        refused(sweep("corpus", "check", tmp_path))
