"""The studies of softcaps and of the language of repeated symbols: trials, groups, and which text
they read."""

from __future__ import annotations

from collections import Counter, defaultdict

import pandas as pd
import pytest

from orchestrator.analysis.thresholds import FEWEST_SETTINGS
from orchestrator.forecast import estimate, kept_bytes
from orchestrator.plan import (
    Plan,
    PlanRequest,
    is_paper_scale,
    make_plan,
    scale_named,
    scale_summary,
    text_of,
)
from search_spaces.analyses import Comparison, Lines
from search_spaces.catalog import load_study
from search_spaces.laws import Threshold
from search_spaces.softcap import softmax_bent_after_training
from search_spaces.spam import LEARNED, QUICK, SYMBOLS
from search_spaces.study import group_of
from trainables.config import SoftcapConfig, SoftmaxConfig, TrialConfig, spam_floor
from trainables.corpora import NO_TEXT, identity
from trainables.errors import UserError


def plan_of(study: str, scale: str, corpus: str = "none", seeds: int | None = None) -> Plan:
    return make_plan(load_study(study), scale_named(scale), corpus, PlanRequest(seeds=seeds))


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_softcaps_and_softmax_differ_in_nothing_but_the_layer_and_share_five_seeds(
    scale: str,
) -> None:
    configs = [trial.config for trial in plan_of("softcap", scale, "ptb").trials]
    assert len(configs) == 60 and all(isinstance(config, TrialConfig) for config in configs)
    alike = Counter(
        config.model_copy(update={"output_layer": SoftmaxConfig()}).trial_id for config in configs
    )
    assert sorted(alike.values()) == [12] * 5
    layers = {config.output_layer for config in configs if isinstance(config, TrialConfig)}
    caps = {(layer.form, layer.cap) for layer in layers if isinstance(layer, SoftcapConfig)}
    assert caps == {(form, cap) for form in ("tanh", "sigmoid") for cap in (5, 10, 15, 20, 30)} | {
        ("sigmoid", 23)
    }


def test_softcaps_are_all_held_against_softmax_as_one_family_a_metric() -> None:
    groups = {group_of(trial.name) for trial in plan_of("softcap", "quick", "ptb").trials}
    families = [
        request for request in load_study("softcap").analyses if isinstance(request, Comparison)
    ]
    assert [request.metric for request in families] == [
        "test_perplexity",
        "press_rank",
        "kl_rank_1e-2",
    ]
    for request in families:
        assert {*request.baselines} | {"softmax"} == groups and {*request.baselines.values()} == {
            "softmax"
        }
    [lines] = [request for request in load_study("softcap").analyses if isinstance(request, Lines)]
    assert lines.reference == "softmax"


def test_softcaps_have_the_same_bends_after_training() -> None:
    [lines] = [request for request in load_study("softcap").analyses if isinstance(request, Lines)]
    groups = {group_of(trial.name) for trial in plan_of("softcap", "quick", "ptb").trials} - {
        "softmax"
    }
    assert {f"softcap {prefix.removeprefix('bent ')}" for prefix in lines.after} == {
        f"{group} " for group in groups
    }
    assert {(by.split()[0], x) for by, x in lines.after.values()} == {
        (form, float(cap)) for _, form, cap in map(str.split, groups)
    }


def test_the_table_of_bends_after_training_has_means() -> None:
    after = {
        f"bent tanh 15 {name}": value
        for name, value in (
            ("press_rank", 196.0),
            ("test_perplexity", 106.0),
            ("kl_from_softmax", 0.0255),
        )
    }
    rows = [
        {"group": "softmax", **after},
        {"group": "softmax", **after, "bent tanh 15 press_rank": 200.0},
    ]
    rows += [
        {"group": f"softcap tanh {cap}", "press_rank": 205.0, "test_perplexity": 104.0}
        for cap in (15, 20)
    ]
    sentence, table = softmax_bent_after_training(pd.DataFrame(rows))
    assert "198 at tanh 15 (205 if trained with it; KL 0.025 nats)" in sentence
    assert table.to_dict("list") == {
        "bend": ["softcap tanh 15"],
        "Press rank, trained": [205],
        "test perplexity, trained": [104],
        "Press rank, bent after": [198],
        "test perplexity, bent after": [106],
        "KL (nats)": [pytest.approx(0.0255)],
    }
    assert softmax_bent_after_training(pd.DataFrame(rows[2:])) == [
        "No trained softmax was bent yet."
    ]


def test_a_trial_of_spam_is_the_same_at_every_scale_that_runs_it() -> None:
    quick, small, paper = ({trial.trial_id: trial.name for trial in plan_of("spam", scale).trials}
                           for scale in ("quick", "small", "paper"))  # fmt: skip
    assert quick.items() < small.items() == paper.items()
    assert len(paper) == 6 * 10 * 5 * 3
    assert {name.split()[1] for name in quick.values()} == {f"V={symbols}" for symbols, *_ in QUICK}
    study = load_study("spam")
    assert [is_paper_scale(study, scale) for scale in ("smoke", "quick", "small", "paper")] == [
        False,
        False,
        True,
        True,
    ]
    assert scale_summary(study, "quick").startswith("a part of the study")


def test_at_quick_every_layer_of_spam_has_several_widths_at_as_many_v_as_a_law_needs() -> None:
    [request] = [
        request for request in load_study("spam").analyses if isinstance(request, Threshold)
    ]
    widths: dict[tuple[str, str], set[str]] = defaultdict(set)
    for trial in plan_of("spam", "quick").trials:
        layer, symbols, width, _ = trial.name.split()
        widths[layer, symbols].add(width)
    several = Counter(layer for (layer, _), of_layer in widths.items() if len(of_layer) > 1)
    assert (
        request.baseline in several
        and len(several) == 5
        and min(several.values()) >= FEWEST_SETTINGS
    )


def test_the_warm_up_of_spam_is_a_share_of_its_training_and_smoke_is_short() -> None:
    for scale, most in (("quick", 320_000), ("smoke", 20_000)):
        for trial in plan_of("spam", scale).trials:
            assert isinstance(trial.config, TrialConfig)
            training = trial.config.training
            assert training.epoch_tokens is not None
            tokens = training.epochs * training.epoch_tokens
            assert tokens <= most and training.warm_up_tokens == tokens / 10


@pytest.mark.parametrize("symbols", SYMBOLS)
def test_a_trial_is_reckoned_with_the_text_that_it_names_itself(symbols: int) -> None:
    trials = {trial.name: trial for trial in plan_of("spam", "paper").trials}
    trial = trials[f"softmax V={symbols} d=16 seed=1"]
    config, text = trial.config, identity(f"spam-{symbols}", data_dir=None)
    assert isinstance(config, TrialConfig)
    assert text_of(config, NO_TEXT) == text_of(config, text) == text
    # Embedding and bias of V + 1 types, and LSTM layers 16 -> 64 -> 64 -> 16 with two biases each.
    lstm = 4 * 64 * (16 + 64 + 2) + 4 * 64 * (64 + 64 + 2) + 4 * 16 * (64 + 16 + 2)
    assert trial.parameters == (symbols + 1) * 17 + lstm
    assert estimate(config, text) == estimate(config, NO_TEXT)
    assert kept_bytes(config, NO_TEXT) > 4 * trial.parameters
    assert estimate(config, text).memory_gb < 4, (
        "a sample of 1,024 contexts needs no Gram matrix of V x V"
    )
    assert config.corpus.sha256 == text.sha256 and spam_floor(symbols) > LEARNED


def test_a_study_of_texts_of_its_own_takes_no_corpus_and_no_further_seeds() -> None:
    with pytest.raises(UserError, match="spam reads none: leave it out"):
        plan_of("spam", "quick", "ptb")
    with pytest.raises(UserError, match="spam has 3 of each"):
        plan_of("spam", "quick", seeds=2)
