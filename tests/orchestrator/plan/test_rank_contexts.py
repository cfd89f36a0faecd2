"""The rank is taken over the first contexts of a test text, or over all."""

from __future__ import annotations

import pytest

from tests.support import tiny_trial as tiny
from trainables.config import SPECTRUM, SoftmaxConfig
from trainables.measurements import measure
from trainables.runtime import Runtime


@pytest.mark.parametrize("contexts", [100, None])
def test_as_many_contexts_are_measured_as_configured(contexts: int | None) -> None:
    config = tiny.trial().with_values({"evaluation.rank_contexts": contexts})
    model, corpus = tiny.trained(SoftmaxConfig()), tiny.corpus()
    metrics = measure([SPECTRUM], model, corpus, config, Runtime())[SPECTRUM].metrics
    assert metrics["rank_rows"] == (contexts or len(corpus.test))
