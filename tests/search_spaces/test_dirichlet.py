"""The study of known distributions: its size, its names, its scales, and that it holds claims of lines it has."""

from __future__ import annotations

from collections import Counter

from orchestrator.plan.study_plan import Plan, make_plan, scale_named
from search_spaces.analyses import Lines
from search_spaces.catalog import load_study
from trainables.config import DirichletConfig
from trainables.config.output_layer import MixtureConfig, MosConfig


def plan_of(scale: str) -> Plan:
    return make_plan(load_study("dirichlet"), scale_named(scale), "none")


def configs(scale: str) -> list[DirichletConfig]:
    return [trial.config for trial in plan_of(scale).trials if isinstance(trial.config, DirichletConfig)]


def test_six_layers_at_three_alphas_and_six_widths_with_three_seeds() -> None:
    found = configs("paper")
    assert len(found) == 324 == len({config.trial_id for config in found})
    settings = Counter((config.alpha, config.width, config.output_layer.name) for config in found)
    assert len(settings) == 3 * 6 * 6 and set(settings.values()) == {3}
    assert {(config.targets, config.outcomes) for config in found} == {(1_000, 1_000)}


def test_no_mixture_has_dropout_which_would_keep_it_from_its_targets() -> None:
    mixtures = [config.output_layer for config in configs("paper") if isinstance(config.output_layer, MixtureConfig)]
    assert mixtures and all(layer.latent_dropout == 0 for layer in mixtures)


def test_smaller_scales_keep_the_widths_and_shrink_the_targets() -> None:
    quick, smoke = configs("quick"), configs("smoke")
    assert [config.width for config in quick] == [config.width for config in configs("paper")]
    assert {(config.targets, config.outcomes) for config in quick} == {(300, 300)}
    assert {(config.targets, config.outcomes) for config in smoke} == {(40, 40)}
    assert len({config.output_layer.name for config in smoke}) == len({config.width for config in smoke}) == 2
    assert len({config.alpha for config in smoke}) == 1 and len(smoke) == 4


def test_every_claim_is_about_lines_of_the_study() -> None:
    [request] = load_study("dirichlet").analyses
    assert isinstance(request, Lines)
    names = {config.output_layer.name for config in configs("paper")}
    alphas = {config.alpha for config in configs("paper")}
    for claim in request.claims:
        assert {claim.better, claim.than} <= names and set(claim.panels) <= alphas and claim.metric in request.metrics


def test_the_parameters_are_those_of_the_formula() -> None:
    softmax = next(trial for trial in plan_of("paper").trials if trial.name == "softmax alpha=1 d=20 seed=1")
    assert softmax.parameters == 2_000 * 20 + 1_000
    mos = next(trial for trial in plan_of("paper").trials if trial.name == "mos alpha=1 d=20 seed=1")
    assert isinstance(mos.config, DirichletConfig) and isinstance(mos.config.output_layer, MosConfig)
    assert mos.parameters == softmax.parameters + mos.config.output_layer.mixtures * (20 + 20 * 20 + 20)
