from __future__ import annotations

from typing import get_args

import pytest

from orchestrator.plan import Plan, PlanRequest, make_plan, reported_study
from orchestrator.store import StudyKey
from search_spaces import head_rank
from search_spaces.analyses import (
    Comparison,
    Curves,
    Differences,
    GroupTable,
    Predictions,
    Similarity,
)
from search_spaces.catalog import NAMES, load_study
from search_spaces.scales import SCALES, apply_scale
from search_spaces.study import group_of
from trainables.config import (
    CustomConfig,
    OutputLayerConfig,
    TrialConfig,
    TrueRankConfig,
)
from trainables.errors import UserError

PUBLISHED = [
    (name, corpus)
    for name in NAMES
    for corpus in load_study(name).corpora
    if not load_study(name).tuning
]

SCALED_NAMES = {
    "mos_dropout": ("mos dropout=0.029", "mos dropout=0.0145", "mos dropout=0"),
    "head_rank": ("LSTM softmax r=2 seed=1",),
    "saturation": ("d=8 seed=1",),
    "confounders": ("B=8 wd=0.01 lr=0.0065 epochs=8 seed=1",),
}
"""Trial names at scale quick, which divides dropout rates by 10 and Transformer widths by 8."""


def plan_of(study: str, corpus: str = "none", scale: str = "paper", **settings: object) -> Plan:
    request = PlanRequest(settings={key: (value,) for key, value in settings.items()})
    return make_plan(load_study(study), SCALES[scale], corpus, request)


@pytest.mark.parametrize(
    ("study", "corpus"), [pair for pair in PUBLISHED if pair[0] not in SCALED_NAMES]
)
def test_groups_are_equal_across_scales(study: str, corpus: str) -> None:
    plans = [plan_of(study, corpus, scale) for scale in ("quick", "small", "paper")]
    names = [[trial.name for trial in plan.trials] for plan in plans]
    assert names[1] == names[2] and len(set(names[0])) == len(names[0])
    paper = names[2][: plans[2].total // plans[2].seeds]
    for plan in plans:
        groups = [group_of(trial.name) for trial in plan.trials[: plan.total // plan.seeds]]
        assert groups == [group for group in map(group_of, paper) if group in groups]


@pytest.mark.parametrize("scale", ["smoke", "quick"])
def test_paper_scale_changes_no_trial(scale: str) -> None:
    for trial in plan_of("seeds", "ptb", scale).trials:
        assert apply_scale(SCALES["paper"], trial.validated) == trial.validated


@pytest.mark.parametrize(("study", "names"), SCALED_NAMES.items())
def test_names_have_values_of_quick(study: str, names: tuple[str, ...]) -> None:
    planned = [trial.name for trial in plan_of(study, "ptb", "quick").trials]
    assert len(set(planned)) == len(planned) and {*names} <= {*planned}


@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize(("study", "corpus"), [*PUBLISHED, ("softcap", "ptb")])
def test_printed_values_have_groups(study: str, corpus: str, scale: str) -> None:
    groups = {group_of(trial.name) for trial in plan_of(study, corpus, scale).trials}
    key = StudyKey(study=study, scale=scale, corpus=corpus, overrides="{}")
    for request in reported_study(key, load_study(study)).analyses:
        match request:
            case GroupTable(published=published) | Curves(published=published):
                printed = set(published.get(corpus, {}))
            case Comparison(published=published, baselines=baselines):
                printed = {*published.get(corpus, {}), *baselines, *baselines.values()}
            case Differences(published=differences, baselines=baselines):
                printed = {*differences.get(corpus, {}), *baselines, *baselines.values()}
            case Similarity(published=scores):
                printed = {group for row in scores.get(corpus, {}).values() for group in row}
            case Predictions(published=predictions):
                printed = set(predictions.get(corpus, {})) - {"mos (Yang)", "moc (Yang)"}
                assert printed == groups
            case _:
                printed = set()
        assert printed <= groups


def test_head_rank_has_every_layer() -> None:
    [union, _] = get_args(OutputLayerConfig)
    assert {type(layer) for layer in head_rank.LAYERS} == {*get_args(union)} - {CustomConfig}


def test_set_keeps_the_generated_truth() -> None:
    two, three = (
        {type(trial.validated): trial.validated for trial in plan.trials}
        for plan in (
            plan_of("rank_metrics", "markov", "smoke", **{"training.epochs": epochs})
            for epochs in (2, 3)
        )
    )
    assert two[TrueRankConfig] == three[TrueRankConfig] and two[TrialConfig] != three[TrialConfig]
    with pytest.raises(UserError, match="whole vocabulary"):
        plan_of("rank_metrics", "markov", "smoke", **{"corpus.vocabulary_limit": 300})
