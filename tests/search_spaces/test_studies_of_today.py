"""The studies of today's models: how many trials, of which sizes, and what scales make of settings
that they sweep."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest

from orchestrator.plan import Plan, make_plan, scale_named
from search_spaces import confounders, head_rank, saturation
from search_spaces.analyses import PartialCorrelations
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES
from search_spaces.study import Study, group_of
from search_spaces.transformer import ladder, recipe_epochs, transformer
from trainables.config import (
    CorpusConfig,
    CustomConfig,
    LanguageTrialConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
    TrialConfig,
    read_config,
)

PTB = CorpusConfig(name="ptb", sha256="0" * 64)
STUDIES = (head_rank.STUDY, saturation.STUDY, confounders.STUDY)


def plan_of(study: Study, scale: str) -> Plan:
    return make_plan(study, scale_named(scale), "ptb")


def transformers(study: Study, scale: str) -> list[TransformerTrialConfig]:
    return [
        trial.config
        for trial in plan_of(study, scale).trials
        if isinstance(trial.config, TransformerTrialConfig)
    ]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
@pytest.mark.parametrize("scale", SCALES)
def test_every_trial_is_valid_and_named_alike_at_every_scale(study: Study, scale: str) -> None:
    trials = plan_of(study, scale).trials
    assert load_study(study.name) is study
    assert all(
        read_config(trial.config.model_dump(mode="json")) == trial.config for trial in trials
    )
    names = {trial.name for trial in plan_of(study, "paper").trials}
    assert {group_of(trial.name) for trial in trials} <= {group_of(name) for name in names}


def test_confounders_are_108_transformers_of_three_batches_decays_and_rates_and_four_numbers_of_tokens() -> (
    None
):
    for scale in ("paper", "small", "quick"):
        configs = transformers(confounders.STUDY, scale)
        assert len(configs) == len({config.trial_id for config in configs}) == 108
        trainings = [config.training for config in configs]
        values = [
            Counter(getattr(training, name) for training in trainings)
            for name in ("batch_size", "weight_decay", "learning_rate", "epochs")
        ]
        assert [sorted(counts.values()) for counts in values] == [
            [36] * 3,
            [36] * 3,
            [36] * 3,
            [27] * 4,
        ]
        assert len({config.model for config in configs}) == 1
    [request] = confounders.STUDY.analyses
    assert isinstance(request, PartialCorrelations)
    assert set(request.settings) == {
        f"training.{x}" for x in ("batch_size", "weight_decay", "learning_rate", "epochs")
    }


@pytest.mark.parametrize("scale", ["smoke", "quick", "small"])
def test_a_scale_keeps_the_share_of_batch_size_and_epochs_that_a_study_asks_for(scale: str) -> None:
    plain = transformer(PTB, SoftmaxConfig(), width=256)
    twice = plain.with_values(
        {"training.batch_size": 64, "training.epochs": 2 * recipe_epochs(PTB)}
    )
    study = Study(name="two", trials=lambda corpus: (plain, twice))  # noqa: ARG005
    one, two = (config.training for config in transformers(study, scale))
    assert two.batch_size == 2 * one.batch_size and two.epochs == 2 * one.epochs
    assert two.warm_up_tokens == one.warm_up_tokens and two.learning_rate == one.learning_rate


def test_saturation_climbs_the_ladder_with_untied_heads_and_as_many_tokens_at_each_width() -> None:
    configs = transformers(saturation.STUDY, "paper")
    assert Counter(config.model.width for config in configs) == dict.fromkeys(
        saturation.WIDTHS, saturation.SEEDS
    )
    for config in configs:
        rung = ladder(config.model.width)
        assert (config.model.layers, config.model.heads) == (rung.layers, rung.heads)
        assert config.model.head == "untied" and config.training.learning_rate == rung.learning_rate
    quick = transformers(saturation.STUDY, "quick")
    assert Counter(config.model.width for config in quick) == dict.fromkeys(
        (8, 12, 16, 24, 32, 40, 48, 64, 80, 96), 3
    )
    assert len({(config.training.epochs, config.training.batch_size) for config in quick}) == 1


def test_head_rank_has_one_backbone_a_kind_and_every_layer_at_ranks_from_4_to_the_width() -> None:
    plan = plan_of(head_rank.STUDY, "paper")
    configs = [trial.config for trial in plan.trials]
    kinds = {"language_model": 2 * 11 * 9, "transformer": 2 * 11 * 8}
    assert Counter(config.kind for config in configs) == kinds and plan.total == 2 * 187
    for kind, rank_count in (("language_model", 9), ("transformer", 8)):
        models = [
            config
            for config in configs
            if config.kind == kind and isinstance(config, LanguageTrialConfig)
        ]
        assert Counter(config.output_layer for config in models) == dict.fromkeys(
            head_rank.LAYERS, 2 * rank_count
        )
        assert len({config.model.model_copy(update={"head_rank": None}) for config in models}) == 1
        assert len({config.training for config in models}) == 1
        ranks = sorted({config.model.head_rank for config in models if config.model.head_rank})
        assert ranks[:3] == [4, 8, 16] and ranks[-1] == head_rank.width(models[0])


def test_head_rank_asks_every_layer_of_this_package_and_both_softcaps_under_names_of_their_own() -> (
    None
):
    [union, _] = get_args(OutputLayerConfig)
    assert {type(layer) for layer in head_rank.LAYERS} == {*get_args(union)} - {CustomConfig}
    trials = plan_of(head_rank.STUDY, "paper").trials
    groups = {group_of(trial.name).removeprefix("LSTM ").removesuffix(" r=64") for trial in trials}
    assert {"softcap tanh", "softcap sigmoid", "monotone_nn"} <= groups


def test_at_quick_heads_have_six_ranks_up_to_the_width_and_two_seeds() -> None:
    trials = [trial.config for trial in plan_of(head_rank.STUDY, "quick").trials]
    lstms = {config.model.head_rank for config in trials if isinstance(config, TrialConfig)}
    others = {
        config.model.head_rank for config in trials if isinstance(config, TransformerTrialConfig)
    }
    layers = [
        config.output_layer.name for config in trials if isinstance(config, LanguageTrialConfig)
    ]
    assert {*layers} == {"softmax", "sigsoftmax", "gss", "softcap", "lms_plif", "mos", "moc"}
    assert (
        lstms == {2, 4, 8, 15, 30, 61}
        and others == {2, 4, 8, 16, 32, 64}
        and len(trials) == 2 * 7 * 6 * 2
    )
