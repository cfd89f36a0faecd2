from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from trainables.config import CorpusConfig, EvaluationConfig, TrueRankConfig
from trainables.corpora import identity, markov_language, read_texts, tokenise
from trainables.errors import UserError
from trainables.runtime import Runtime
from trainables.trial import run_trial
from trainables.trial_folder import TrialOutcome

ROWS = 1200


def run(directory: Path, variant: Any, name: str = "markov-20", rows: int = ROWS) -> TrialOutcome:
    corpus = CorpusConfig(name=name, sha256=identity(name, data_dir=None).sha256)
    evaluation = EvaluationConfig(test_tokens=rows)
    config = TrueRankConfig(seed=1, corpus=corpus, variant=variant, evaluation=evaluation)
    outcome = run_trial(config, directory=directory, runtime=Runtime())
    assert outcome.state == "done"
    return outcome


def written_out(rank: int, rows: int) -> tuple[list[int], np.ndarray]:
    language = markov_language(rank)
    text = read_texts(f"markov-{rank}", data_dir=None)["test"].text
    states = [language.types.index(token) for token in tokenise(text)[:rows]]
    return states, language.log_p_VV[states]


def test_exact_matrix_ranks_equal_numpy(tmp_path: Path) -> None:
    measurements = run(tmp_path, "float64").measurements
    states, matrix = written_out(20, ROWS)
    sigma = np.linalg.svd(matrix, compute_uv=False)
    stored_sigma = np.load(tmp_path / "spectrum.npy")
    np.testing.assert_allclose(stored_sigma[:20], sigma[:20], rtol=1e-11)
    spectrum, about = measurements["spectrum@1"], measurements["true_rank@1"]
    assert spectrum["press_rank"] == about["true_rank"] == about["language_rank"] == 20
    assert (spectrum["press_eps"], spectrum["rank_method"]) == (2.0**-52, "qr")
    assert (spectrum["rank_rows"], spectrum["rank_columns"]) == (ROWS, 1000)
    assert about["different_contexts"] == len(set(states))
    energy = np.cumsum(sigma**2) / np.sum(sigma**2)
    assert spectrum["effective_rank_1e-3"] == int(np.argmax(energy >= 1 - 1e-3)) + 1
    language = markov_language(20)
    losses = [-language.log_p_VV[a, b] for a, b in itertools.pairwise(states)]
    assert measurements["perplexity@1"]["test_perplexity"] == pytest.approx(
        math.exp(math.fsum(losses) / (ROWS - 1))
    )
    assert about["entropy_perplexity"] == pytest.approx(math.exp(language.entropy_rate()))


@pytest.mark.parametrize("variant", ["float32", "noise"])
def test_float64_keeps_small_values(tmp_path: Path, variant: str) -> None:
    measurements = run(tmp_path, variant).measurements
    about = measurements["true_rank@1"]
    assert measurements["spectrum@1"]["press_rank"] == about["press_rank_float32"] == 20
    assert measurements["spectrum@1"]["press_eps"] == 2.0**-23
    # Rounding errors repeat when a context repeats; noise does not.
    bound = about["different_contexts"] if variant == "float32" else 1000
    assert isinstance(bound, int)
    assert 0.9 * bound < float(about["press_rank_float64"]) <= bound


def test_few_contexts_lower_the_rank(tmp_path: Path) -> None:
    about = run(tmp_path, "float64", name="markov-250", rows=150).measurements["true_rank@1"]
    states, _ = written_out(250, 150)
    assert about["language_rank"] == 250
    assert (
        about["true_rank"]
        == about["different_contexts"]
        == about["press_rank_float64"]
        == len(set(states))
    )


@pytest.mark.parametrize(
    ("corpus", "sentence"),
    [
        ({"name": "ptb"}, "not for 'ptb'"),
        ({"name": "markov-3"}, "from 5 to 500"),
        ({"name": "markov", "vocabulary_limit": 300}, "whole vocabulary only"),
    ],
)
def test_corpus_without_truth_is_refused(corpus: dict[str, Any], sentence: str) -> None:
    with pytest.raises((UserError, ValidationError), match=sentence):
        TrueRankConfig.model_validate(
            {"seed": 1, "variant": "float64", "corpus": {"sha256": "0" * 64, **corpus}}
        )
