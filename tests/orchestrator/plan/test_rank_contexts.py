"""The rank over a whole test text, where a study takes it over the first contexts: planned by
`--set`, and measured."""

from __future__ import annotations

from orchestrator.variants import apply_settings
from search_spaces.awd_lstm import WIKITEXT_2_RANK_CONTEXTS, awd_lstm
from search_spaces.scales import SCALES, apply_scale
from tests.support import tiny_trial as tiny
from trainables.config import SPECTRUM, CorpusConfig, SoftmaxConfig, TrialConfig
from trainables.measurements import measure
from trainables.runtime import Runtime

ALL = {"evaluation.rank_contexts": None}


def test_all_contexts_are_planned_as_another_trial_at_every_scale() -> None:
    published = awd_lstm(CorpusConfig(name="wikitext-2", sha256="0" * 64), SoftmaxConfig())
    assert published.evaluation.rank_contexts == WIKITEXT_2_RANK_CONTEXTS
    for name in ("paper", "quick"):
        scaled = apply_scale(SCALES[name], published)
        [whole] = apply_settings([scaled], ALL)
        assert isinstance(whole, TrialConfig) and whole.evaluation.rank_contexts is None
        assert whole.trial_id != scaled.trial_id
        assert isinstance(scaled, TrialConfig)
        evaluation = whole.evaluation.model_copy(
            update={"rank_contexts": scaled.evaluation.rank_contexts}
        )
        assert whole.model_copy(update={"evaluation": evaluation}) == scaled


def test_all_contexts_are_measured() -> None:
    few = tiny.trial()
    few = few.model_copy(
        update={"evaluation": few.evaluation.model_copy(update={"rank_contexts": 100})}
    )
    [whole] = apply_settings([few], ALL)
    model, corpus = tiny.trained(SoftmaxConfig()), tiny.corpus()
    rows = []
    for config in (few, whole):
        assert isinstance(config, TrialConfig)
        rows.append(
            measure([SPECTRUM], model, corpus, config, Runtime())[SPECTRUM].metrics["rank_rows"]
        )
    assert rows == [100, len(corpus.test)]
