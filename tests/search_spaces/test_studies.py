"""What the built-in studies claim, beside their trials, whose number and settings `test_golden_ids`
pins."""

from __future__ import annotations

import pytest

from orchestrator.plan import Plan, PlanRequest, make_plan, scale_named
from search_spaces.analyses import (
    Comparison,
    Counts,
    Curves,
    Differences,
    GroupTable,
    Lines,
    Predictions,
    Similarity,
)
from search_spaces.catalog import NAMES, load_study
from search_spaces.gss_grid import C_VALUES
from search_spaces.published import by_group, p_values
from search_spaces.scales import SCALES, apply_scale
from search_spaces.study import group_of
from trainables.config import (
    DirichletConfig,
    EvaluationConfig,
    MosConfig,
    TrialConfig,
    TrueRankConfig,
)
from trainables.errors import UserError
from trainables.parameters import in_millions

PUBLISHED = [
    (name, corpus)
    for name in NAMES
    for corpus in load_study(name).corpora
    if not load_study(name).tuning
]


def plan_of(study: str, corpus: str = "none", scale: str = "paper", **settings: object) -> Plan:
    request = PlanRequest(settings={key: (value,) for key, value in settings.items()})
    return make_plan(load_study(study), scale_named(scale), corpus, request)


@pytest.mark.parametrize(("study", "corpus"), PUBLISHED)
def test_a_trial_has_the_same_name_at_every_scale_but_for_a_seed_where_there_are_more(
    study: str, corpus: str
) -> None:
    plans = [plan_of(study, corpus, scale) for scale in ("quick", "small", "paper")]
    names = [[trial.name for trial in plan.trials] for plan in plans]
    assert names[1] == names[2]
    assert len(set(names[0])) == len(names[0])
    paper = names[2][: plans[2].total // plans[2].seeds]
    for plan in plans:
        own = plan.trials[: plan.total // plan.seeds]
        groups = [group_of(trial.name) for trial in own]
        assert groups == [group for group in map(group_of, paper) if group in groups]


def test_the_grid_at_scale_quick_has_three_slopes_at_every_bend_with_three_seeds() -> None:
    cells = {f"gss c={c:g} k={k}" for c in C_VALUES for k in ("1.5", "2", "3")}
    for corpus in ("ptb", "wikitext-2"):
        trials = plan_of("gss_grid", corpus, "quick").trials
        assert {group_of(trial.name) for trial in trials} == cells
        assert len(trials) == 3 * len(cells) == 81


@pytest.mark.parametrize("scale", ["smoke", "quick"])
@pytest.mark.parametrize("corpus", ["ptb", "wikitext-2"])
def test_every_output_layer_takes_as_many_steps_over_as_much_text(corpus: str, scale: str) -> None:
    trainings = {
        (
            training.batch_size,
            training.bptt,
            training.epoch_tokens,
            training.epochs,
            training.optimizer,
        )
        for study in ("gss_grid", "seeds")
        for trial in plan_of(study, corpus, scale).trials
        if isinstance(trial.config, TrialConfig)
        for training in (trial.config.training,)
    }
    assert len(trainings) == 1


@pytest.mark.parametrize("scale", ["smoke", "quick"])
def test_a_config_that_a_scale_made_is_trained_as_it_is_at_scale_paper(scale: str) -> None:
    for trial in plan_of("seeds", "ptb", scale).trials:
        assert apply_scale(SCALES["paper"], trial.config) == trial.config


@pytest.mark.parametrize(("study", "corpus"), PUBLISHED)
def test_every_printed_value_stands_beside_a_group_of_the_plan(study: str, corpus: str) -> None:
    groups = {group_of(trial.name) for trial in plan_of(study, corpus).trials}
    for request in load_study(study).analyses:
        match request:
            case GroupTable(published=published) | Curves(published=published):
                printed = set(published.get(corpus, {}))
            case Comparison(published=published, baselines=baselines):
                printed = {*published.get(corpus, {}), *baselines, *baselines.values()}
            case Differences(published=differences, baselines=baselines):
                printed = {*differences.get(corpus, {}), *baselines, *baselines.values()}
            case Similarity(published=scores):
                printed = {group for row in scores.get(corpus, {}).values() for group in row}
            case _:
                printed = set()
        assert printed <= groups


def test_parameter_counts_beside_the_printed_ones_are_equal() -> None:
    compared = 0
    for study, corpus in PUBLISHED:
        if study == "plif_lm":  # the talk trained other models
            continue
        trials = {group_of(trial.name): trial.parameters for trial in plan_of(study, corpus).trials}
        for request in load_study(study).analyses:
            printed = request.published.get(corpus, {}) if isinstance(request, GroupTable) else {}
            for group, numbers in printed.items():
                if "parameters" in numbers:
                    assert in_millions(trials[group]) == in_millions(
                        int(numbers["parameters"].value)
                    ), (study, group)
                    compared += 1
    assert compared == 2 * 5 + 2 * 12 + 6 + 3


def test_printed_values_are_read_as_they_are_printed() -> None:
    mos = by_group("table2_seeds")["wikitext-2"]["mos"]
    assert (mos["test_perplexity"].value, mos["test_perplexity"].deviation) == (61.96, 0.40)
    assert (mos["parameters"].value, mos["parameters"].deviation) == (34_900_000, None)
    printed = {"sigsoftmax": 0.392, "gss": 0.262, "lms_plif": 1.91e-05, "mos": 2.02e-15}
    assert p_values("sm_table1_significance")["ptb"] == printed


def test_every_claim_of_dirichlet_is_about_lines_of_the_study() -> None:
    configs = [
        trial.config
        for trial in plan_of("dirichlet").trials
        if isinstance(trial.config, DirichletConfig)
    ]
    [request] = load_study("dirichlet").analyses
    assert isinstance(request, Lines)
    names, alphas = (
        {config.output_layer.name for config in configs},
        {config.alpha for config in configs},
    )
    for claim in request.claims:
        assert (
            {claim.better, claim.than} <= names
            and set(claim.panels) <= alphas
            and claim.metric in request.metrics
        )


def test_the_parameters_of_dirichlet_are_those_of_the_formula() -> None:
    trials = {trial.name: trial for trial in plan_of("dirichlet").trials}
    softmax, mos = (trials[f"{layer} alpha=1 d=20 seed=1"] for layer in ("softmax", "mos"))
    assert softmax.parameters == 2_000 * 20 + 1_000
    assert isinstance(mos.config, DirichletConfig) and isinstance(
        mos.config.output_layer, MosConfig
    )
    assert mos.parameters == softmax.parameters + mos.config.output_layer.mixtures * (
        20 + 20 * 20 + 20
    )


def test_the_layers_of_layer_gates_are_held_against_each_other_pair_by_pair_of_a_seed() -> None:
    """At a seed they learn the same function from the same examples: an unpaired test would be the
    wrong one."""
    analyses = load_study("layer_gates").analyses
    assert [len(request.baselines) for request in analyses if isinstance(request, Comparison)] == [
        6,
        3,
    ]
    [counts] = [request for request in analyses if isinstance(request, Counts)]
    assert {
        getattr(trial.config, "learning_rates", None) for trial in plan_of("layer_gates").trials
    } == {counts.values}
    assert {trial.parameters for trial in plan_of("layer_gates").trials} == {3172}


def test_set_changes_the_models_of_a_generated_language_and_leaves_its_truth_which_is_not_trained() -> (
    None
):
    plans = [
        plan_of("rank_metrics", "markov", "smoke", **{"training.epochs": epochs})
        for epochs in (2, 3)
    ]
    models = [trial.config for trial in plans[1].trials if isinstance(trial.config, TrialConfig)]
    assert {config.training.epochs for config in models} == {3}
    truths = [
        [t.trial_id for t in plan.trials if isinstance(t.config, TrueRankConfig)] for plan in plans
    ]
    assert truths[0] == truths[1] and len(truths[0]) == 3
    with pytest.raises(UserError, match="whole vocabulary only"):
        plan_of("rank_metrics", "markov", "smoke", **{"corpus.vocabulary_limit": 300})


def test_the_rank_of_a_generated_language_is_taken_over_all_contexts_and_of_a_text_over_a_sample_at_quick() -> (
    None
):
    """A sample may hold fewer different contexts than the language's rank, which is up to 500."""
    languages = plan_of("rank_metrics", "markov-500", "quick").trials
    assert {type(trial.config) for trial in languages} == {TrialConfig, TrueRankConfig}
    assert {_evaluation_of(trial.config).rank_contexts for trial in languages} == {None}
    texts = plan_of("rank_metrics", "pydocs", "quick").trials
    assert {_evaluation_of(trial.config).rank_contexts for trial in texts} == {1_024}


def _evaluation_of(config: object) -> EvaluationConfig:
    assert isinstance(config, TrialConfig | TrueRankConfig)
    return config.evaluation


def test_printed_predictions_are_of_trained_models_and_yangs() -> None:
    [printed] = [
        analysis.published
        for analysis in load_study("qualitative").analyses
        if isinstance(analysis, Predictions)
    ]
    trained = {group_of(trial.name) for trial in plan_of("qualitative", "ptb").trials}
    assert set(printed["ptb"]) == trained | {"mos (Yang)", "moc (Yang)"} and len(trained) == 8
