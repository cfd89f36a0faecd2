"""rank_metrics on a generated language, and that nothing changes elsewhere."""

from __future__ import annotations

import pytest

from orchestrator.plan.study_plan import Plan, PlanRequest, make_plan, scale_named
from search_spaces.catalog import load_study
from search_spaces.models import SIX
from trainables.config import TrialConfig, TrueRankConfig
from trainables.errors import UserError

TRUTH = ["truth float64 seed=1", "truth float32 seed=1", "truth noise seed=1"]
FIRST_IDS = {"ptb": "a23d1e436b0104a3", "wikitext-2": "316aaca604d3c03c"}
"""Of the softmax trial at paper scale, as it was before there were generated languages."""


def plan_of(corpus: str, scale: str, study: str = "rank_metrics", overrides: dict[str, object] | None = None) -> Plan:
    return make_plan(load_study(study), scale_named(scale), corpus, PlanRequest(overrides=overrides or {}))


def test_the_truth_stands_before_six_layers_on_one_model() -> None:
    for corpus in ("markov", "markov-7"):
        trials = plan_of(corpus, "quick").trials
        assert [trial.name for trial in trials[:3]] == TRUTH
        configs = [trial.config for trial in trials[3:] if isinstance(trial.config, TrialConfig)]
        assert [config.output_layer.name for config in configs] == list(SIX)
        assert len({(config.model, config.training, config.seed) for config in configs}) == 1
    smoke = [trial.name for trial in plan_of("markov", "smoke").trials]
    assert smoke[:3] == TRUTH and len(smoke) == 7


@pytest.mark.parametrize("corpus", FIRST_IDS)
def test_on_other_corpora_it_has_the_five_models_that_it_had(corpus: str) -> None:
    trials = plan_of(corpus, "paper").trials
    assert [trial.config.family for trial in trials] == ["softmax", "sigsoftmax", "gss", "lms_plif", "mos"]
    assert trials[0].trial_id[:16] == FIRST_IDS[corpus]


@pytest.mark.parametrize("scale", ["smoke", "quick", "small", "paper"])
def test_truth_and_models_see_the_same_rows_of_the_whole_vocabulary(scale: str) -> None:
    configs = [trial.config for trial in plan_of("markov", scale).trials]
    assert all(isinstance(config, TrialConfig | TrueRankConfig) for config in configs)
    read = {(c.corpus, c.evaluation) for c in configs if isinstance(c, TrialConfig | TrueRankConfig)}
    assert len(read) == 1
    [(corpus, evaluation)] = read
    assert corpus.vocabulary_limit is None
    assert evaluation.test_tokens == (2_000 if scale == "smoke" else None)


def test_models_of_any_study_keep_the_whole_generated_vocabulary_and_cut_others() -> None:
    limits = {}
    for corpus in ("markov-20", "pydocs"):
        config = plan_of(corpus, "smoke", study="seeds").trials[0].config
        assert isinstance(config, TrialConfig)
        limits[corpus] = config.corpus.vocabulary_limit
    assert limits == {"markov-20": None, "pydocs": 300}


def test_the_truth_cannot_be_cut() -> None:
    with pytest.raises(UserError, match="whole vocabulary only"):
        plan_of("markov", "smoke", overrides={"corpus.vocabulary_limit": 300})
    rows = [trial.config for trial in plan_of("markov", "smoke", overrides={"evaluation.rank_contexts": 50}).trials]
    assert {c.evaluation.rank_contexts for c in rows if isinstance(c, TrialConfig | TrueRankConfig)} == {50}


def test_set_changes_the_models_and_leaves_the_truth_which_is_not_trained() -> None:
    plain, fewer = plan_of("markov", "smoke"), plan_of("markov", "smoke", overrides={"training.epochs": 3})
    configs = [trial.config for trial in fewer.trials]
    assert {config.training.epochs for config in configs if isinstance(config, TrialConfig)} == {3}
    truths = [[t.trial_id for t in plan.trials if isinstance(t.config, TrueRankConfig)] for plan in (plain, fewer)]
    assert truths[0] == truths[1] and len(truths[0]) == 3
    with pytest.raises(UserError, match=r"did you mean training\.epochs"):
        plan_of("markov", "smoke", overrides={"training.epoch": 3})


def test_scale_quick_trains_longer_where_little_is_learned_in_the_first_passes() -> None:
    epochs = {}
    for corpus in ("markov", "pydocs"):
        config = plan_of(corpus, "quick").trials[-1].config
        assert isinstance(config, TrialConfig)
        epochs[corpus] = config.training.epochs
    assert epochs == {"markov": 30, "pydocs": 5}
