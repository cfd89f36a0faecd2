from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import tiny_trial as tiny
from tests.support.faulty_server import write_corpus
from tests.support.tiny_trial import trained
from trainables.config import (
    Context,
    ContextsFile,
    CorpusConfig,
    GssConfig,
    MosConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    even_contexts,
    published_contexts,
)
from trainables.corpora import Corpus, identity, load
from trainables.errors import UserError
from trainables.language_model import LanguageModel
from trainables.measurements import measure
from trainables.measurements.top_k import default_contexts, top_k_metrics
from trainables.runtime import Runtime


def brute_force(
    model: LanguageModel, corpus: Corpus, index: int
) -> tuple[list[str], list[float], int]:
    row = tiny.log_p_matrix(model, corpus.test)[index]
    order = sorted(range(len(row)), key=lambda word: (-row[word], word))
    true = int(corpus.test[index + 1])
    return (
        [corpus.vocabulary[word] for word in order],
        [math.exp(row[word]) for word in order],
        order.index(true) + 1,
    )


@pytest.mark.parametrize(
    "layer",
    [GssConfig(c=-1.5, k=2.5), MosConfig(mixtures=3)],
    ids=lambda layer: layer.name,
)
def test_words_equal_sorted_matrix(layer: OutputLayerConfig) -> None:
    model, corpus = trained(layer), tiny.corpus()
    metrics = top_k_metrics(model, corpus, tiny.trial(), even_contexts(len(corpus.test)))
    assert list(metrics) == [f"top_k even {number}" for number in range(1, 19)]
    for context in even_contexts(len(corpus.test)):
        prediction = json.loads(str(metrics[f"top_k even {context.number}"]))
        words, probabilities, rank = brute_force(model, corpus, context.last_token_index)
        assert [word for word, _ in prediction["top"]] == words[:5]
        assert [p for _, p in prediction["top"]] == pytest.approx(probabilities[:5], rel=2e-5)
        assert (prediction["next"], prediction["rank"]) == (words[rank - 1], rank)
        assert prediction["probability"] == pytest.approx(probabilities[rank - 1], rel=2e-5)
        assert "next_in_text" not in prediction
        before = corpus.test[: context.last_token_index + 1].tolist()
        assert prediction["context"].split() == [corpus.vocabulary[word] for word in before][-8:]


def test_ties_are_in_order() -> None:
    model, corpus = trained(SoftmaxConfig()), tiny.corpus()
    with torch.no_grad():
        model.embedding_VD.zero_()
        model.output.bias_V.zero_()  # type: ignore[operator]
    context = Context(group="a", number=1, last_token_index=9)
    (text,) = top_k_metrics(model, corpus, tiny.trial(), [context]).values()
    prediction = json.loads(str(text))
    assert prediction["top"] == [[f"w{word}", 0.025] for word in range(5)]
    assert prediction["rank"] == int(corpus.test[10]) + 1


def test_default_contexts() -> None:
    corpus, config = tiny.corpus(), tiny.trial()
    cut = config.with_values({"evaluation.test_tokens": 100})
    assert default_contexts(corpus, cut) == even_contexts(100)
    assert default_contexts(replace(corpus, name="ptb"), cut) == published_contexts()


def measured_on_a_folder(
    tmp_path: Path, file: ContextsFile, words: Sequence[str]
) -> dict[str, Any]:
    write_corpus(tmp_path / "tiny", **dict.fromkeys(("train", "valid", "test"), " ".join(words)))
    sha256 = identity("tiny", data_dir=tmp_path).sha256
    limited = CorpusConfig(name="tiny", sha256=sha256, vocabulary_limit=40)
    config = tiny.trial().model_copy(update={"corpus": limited})
    corpus = load(limited, data_dir=tmp_path)
    runtime, model = Runtime(data_dir=tmp_path, contexts=file), trained(SoftmaxConfig())
    [(metrics, _)] = measure([file.measurement], model, corpus, config, runtime).values()
    return {name: json.loads(str(value)) for name, value in metrics.items()}


def test_contexts_are_checked_against_text(tmp_path: Path) -> None:
    words = [f"w{index % 60}" for index in range(200)]
    text = '[{"last_token_index": 49, "next_token": "w50"}, {"last_token_index": 4}]'
    file = ContextsFile(name="mine", text=text)
    predictions = measured_on_a_folder(tmp_path, file, words)
    assert set(predictions) == {f"top_k-{file.tag} own 1", f"top_k-{file.tag} own 2"}
    cut, whole = (predictions[f"top_k-{file.tag} own {number}"] for number in (1, 2))
    assert (cut["next"], cut["next_in_text"]) == ("<unk>", "w50")
    assert whole["next"] == "w5" and "next_in_text" not in whole
    # Both words become <unk>, but the wrong one is still detected.
    wrong = ContextsFile(name="mine", text=text.replace("w50", "w51"))
    with pytest.raises(UserError, match=r"'w51' after token 49.*'w50'"):
        measured_on_a_folder(tmp_path, wrong, words)


def test_unknown_measurement() -> None:
    with pytest.raises(UserError, match=r"top_k@2.*perplexity@1"):
        measure(["top_k@2"], trained(SoftmaxConfig()), tiny.corpus(), tiny.trial(), Runtime())
