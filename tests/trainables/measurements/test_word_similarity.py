from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cosine
from scipy.stats import spearmanr

from tests.support import tiny_trial as tiny
from tests.support.tiny_trial import trained
from trainables.config import SoftmaxConfig, TextFile
from trainables.corpora import Benchmark, read_folder
from trainables.measurements import measure
from trainables.measurements.word_similarity import similarity_metrics, spearman_rho
from trainables.runtime import Runtime


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=30))
def test_rho_equals_scipy(values: list[tuple[int, int]]) -> None:
    x, y = (np.array(side, dtype=np.float64) for side in zip(*values, strict=True))
    rho = spearman_rho(x, y)
    if min(len(set(x)), len(set(y))) == 1:
        assert rho is None
    else:
        assert rho == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize(
    ("lines", "pairs"),
    [
        (("w1 w2 1", "w2 w3 2", "w3 unknown 3"), 2),
        (("w1 w2 1", "w2 w3 1", "w3 w4 1"), 3),
        (("w1 w2 1", "w1 w2 2", "w2 w1 3"), 3),
        ((), 0),
    ],
    ids=["two pairs", "equal scores", "equal cosines", "nothing"],
)
def test_undefined_rho(lines: tuple[str, ...], pairs: int) -> None:
    benchmark = Benchmark(name="B", file=TextFile(name="EN-B.txt", text="\n".join(lines)))
    embedding = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    words = ("<eos>", "w1", "w2", "w3", "w4")
    metrics = similarity_metrics(embedding, words, [benchmark], prefix="similarity")
    assert metrics == {"similarity pairs B": pairs}


def test_rho_of_custom_folder(tmp_path: Path) -> None:
    drawn = np.random.default_rng(1).integers(1, 60, (60, 3)).tolist()
    lines = [f"W{a}\tw{b}\t{score}\n" for a, b, score in drawn]
    (tmp_path / "EN-MINE.txt").write_text("".join(lines))
    folder, model, corpus = read_folder(tmp_path), trained(SoftmaxConfig()), tiny.corpus()
    runtime = Runtime(benchmarks=folder)
    [(metrics, _)] = measure([folder.measurement], model, corpus, tiny.trial(), runtime).values()
    usable = [(a, b, score) for a, b, score in drawn if max(a, b) < tiny.VOCABULARY]
    assert 3 < len(usable) < 60
    rows = model.embedding_VD.detach().double().numpy()
    cosines = [1 - cosine(rows[a], rows[b]) for a, b, _ in usable]
    rho = pytest.approx(spearmanr(cosines, [score for *_, score in usable]).statistic)
    prefix = f"similarity-{folder.tag}"
    assert metrics == {f"{prefix} MINE": rho, f"{prefix} pairs MINE": len(usable)}
