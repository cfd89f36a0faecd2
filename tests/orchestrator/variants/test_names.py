from __future__ import annotations

import itertools
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.analysis import flatten
from orchestrator.plan import Plan, PlanRequest, make_plan, reported_study
from orchestrator.store import StudyKey
from orchestrator.variants import setting_hash, told_apart, trial_names
from search_spaces.scales import SCALES
from search_spaces.study import Comparison, GroupTable, Study, group_of
from tests.support.synthetic_results import trial_row
from trainables.config import (
    CorpusConfig,
    CustomConfig,
    GssConfig,
    MosConfig,
    SoftmaxConfig,
    TrainingConfig,
    TrialConfig,
    flat_values,
)

ZERO_WIDTH, CYRILLIC_A, FULL_WIDTH_A = "\u200b", "\u0430", "\uff41"


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    for seed in (1, 2):
        for rate, layer in itertools.product(
            (10.0, 20.0), (SoftmaxConfig(), GssConfig(c=0.0, k=2.0))
        ):
            yield TrialConfig(
                seed=seed,
                corpus=corpus,
                output_layer=layer,
                training=TrainingConfig(learning_rate=rate),
            )


def position(config: Any) -> int:
    is_20 = f"{config.training.learning_rate:e}".startswith("2")
    return 2 * is_20 + (config.output_layer.name == "gss")


def plan_of(label: Callable[[Any], Any], scale: str = "quick") -> Plan:
    study = Study(name="mine", trials=trials, label=label, corner=list)
    return make_plan(study, SCALES[scale], "pydocs")


@pytest.mark.parametrize(
    ("scale", "settings", "rates"),
    [
        ("quick", {}, {"0.01", "0.02"}),
        ("quick", {"training.epochs": (2, 22)}, {"0.01", "0.02"}),
        ("paper", {}, {"10", "20"}),
    ],
)
def test_names_show_trained_values(scale: str, settings: Any, rates: set[str]) -> None:
    """Scale paper trains the study's learning rate of 20 as it is, scale quick divides it by 1,000.

    Values from `--set` are not scaled.
    """
    study = Study(name="mine", trials=trials)
    plan = make_plan(study, SCALES[scale], "ptb", PlanRequest(settings=settings))
    named = {trial.name: re.findall(r"learning_rate=([\d.]+)", trial.name) for trial in plan.trials}
    assert len(named) == len(plan.trials) and {rate for [rate] in named.values()} == rates
    for trial in plan.trials:
        flat = flat_values(trial.config)
        assert named[trial.name] == [f"{flat['training.learning_rate']:g}"]


def test_names_hide_rounding_of_scales() -> None:
    layers = [MosConfig(mixtures=2, latent_dropout=rate) for rate in (0.29, 0.07)]
    study = Study(
        name="mine",
        trials=lambda corpus: (
            TrialConfig(seed=1, corpus=corpus, output_layer=layer) for layer in layers
        ),
        label=lambda config: config.output_layer.name,
    )
    names = [trial.name for trial in make_plan(study, SCALES["quick"], "pydocs").trials]
    assert 0.29 * 0.1 != 0.029
    assert names == [f"mos, output_layer.latent_dropout={rate}" for rate in ("0.029", "0.007")]


def test_settings_equal_at_scale_stay_distinguished() -> None:
    """At scale smoke, the widths 8 and 16 both become 2."""
    study = Study(
        name="mine",
        trials=lambda corpus: (
            TrialConfig(seed=seed, corpus=corpus, output_layer=SoftmaxConfig()).with_values(
                {"model.hidden_width": width}
            )
            for seed, width in ((1, 8), (2, 16), (3, 400))
        ),
    )
    plan = make_plan(study, SCALES["smoke"], "pydocs")
    assert [trial.name for trial in plan.trials] == [
        "softmax, model.hidden_width=2 seed=1",
        "softmax, model.hidden_width=2 seed=2",
        "softmax, model.hidden_width=12 seed=3",
    ]


def test_analyses_find_groups_at_any_scale() -> None:
    rate = "gss c=0 k=2, training.learning_rate"
    comparison = Comparison(baselines={f"{rate}=10": f"{rate}=20"})
    table = GroupTable(metrics=("press_rank",), groups=(f"{rate}=20",))
    study = Study(name="mine", trials=trials, analyses=(comparison, table, len))
    key = StudyKey(study="mine", scale="quick", corpus="pydocs", overrides="{}")
    at_quick = reported_study(key, study)
    expected = Comparison(baselines={f"{rate}=0.01": f"{rate}=0.02"}, metric="test_perplexity")
    assert at_quick.analyses == (expected, replace(table, groups=(f"{rate}=0.02",)), len)
    assert {f"{rate}=0.01", f"{rate}=0.02"} <= {
        group_of(trial.name) for trial in make_plan(study, SCALES["quick"], "pydocs").trials
    }
    assert reported_study(replace(key, scale="paper"), study) == study


def stored(plan: Plan) -> list[dict[str, Any]]:
    return [
        trial_row(trial.name, config=trial.config) | {"trial_id": trial.trial_id}
        for trial in plan.trials
    ]


def settings_by_group(rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for group, row in zip(flatten(rows).groups, rows, strict=True):
        groups[group].add(
            json.dumps({key: value for key, value in row["config"].items() if key != "seed"})
        )
    return groups


LABELS: dict[str, Callable[[Any], str]] = {
    "the same without a seed": lambda config: "x",  # noqa: ARG005
    "only white space": lambda config: "\t \u00a0\n",  # noqa: ARG005
    "case": lambda config: f"{('abc', 'Abc', 'ABC', 'aBc')[position(config)]} seed={config.seed}",
    "another setting's name": lambda config: (
        "x" + position(config) % 2 * f", training.learning_rate={config.training.learning_rate:g}"
    ),
    "look-alikes": lambda config: (
        f"{('a', CYRILLIC_A, FULL_WIDTH_A, 'á')[position(config)]}x seed={config.seed}"
    ),
    "the end of a long text": lambda config: f"{'x' * 5000}{position(config)}",
    "broken text": lambda config: f"\ud800\x1b[2J\x00_{position(config) // 2} seed={config.seed}",
    "names of other columns": lambda config: (
        f"{('model', 'pairs', 'benchmark', '_model')[position(config)]} seed=0"
    ),
}


@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
def test_each_setting_is_one_group(label: Callable[[Any], str]) -> None:
    rows = stored(plan_of(label))
    groups = settings_by_group(rows)
    assert [len(settings) for settings in groups.values()] == [1] * 4
    names = [row["name"] for row in rows]
    assert len(set(names)) == 8 and names == [record["name"] for record in flatten(rows).records]
    assert all(
        name.isprintable() and len(name) < 200 and name == " ".join(name.split()) for name in names
    )
    assert {group_of(name) for name in names} == set(groups)


def test_long_differences_are_hashed() -> None:
    """Two layers of the same name, from two files, differ only in a 64-digit hash."""
    corpus = CorpusConfig(name="pydocs", sha256="0" * 64)
    layers = [CustomConfig(layer="mine", sha256=digit * 64) for digit in "12"]
    configs = [TrialConfig(seed=1, corpus=corpus, output_layer=layer) for layer in layers]
    hashes = [setting_hash(config.model_dump(mode="json"))[:8] for config in configs]
    names = trial_names(Study(name="mine", trials=lambda _: configs), configs, configs)
    assert names == [f"mine #{mark} seed=1" for mark in hashes]


def test_hash_covers_the_trained_setting() -> None:
    for scale in ("smoke", "quick", "paper"):
        for row in stored(plan_of(LABELS["another setting's name"], scale)):
            mark = group_of(row["name"]).rpartition("#")[2]
            assert setting_hash(row["config"]).startswith(mark) and len(mark) == 8


def test_hash_ignores_only_the_seed() -> None:
    content = {"seed": 1, "kind": "language_model", "x": 2}
    assert setting_hash({**content, "seed": 5}) == setting_hash(content)
    assert setting_hash({**content, "x": 3}) != setting_hash(content)


def test_similar_hashes_get_more_digits() -> None:
    names = told_apart(["x", "x"], ["a" * 64, "a" * 63 + "b"])
    assert len(set(names)) == 2


@pytest.mark.chaos(300, 10_000)
def test_any_labels_are_distinguished(rounds: int) -> None:
    draws = random.Random(15)
    letters = f"aA0123 #²\u0301\u00a0\n{CYRILLIC_A}{FULL_WIDTH_A}"
    for _ in range(rounds):
        settings = [f"{draws.getrandbits(256):064x}" for _ in range(draws.randint(1, 6))]
        pairs = [
            ("".join(draws.choices(letters, k=draws.randint(0, 3))), draws.choice(settings))
            for _ in range(draws.randint(1, 20))
        ]
        groups = told_apart([group for group, _ in pairs], [setting for _, setting in pairs])
        owners: defaultdict[str, set[str]] = defaultdict(set)
        for group, (_, setting) in zip(groups, pairs, strict=True):
            owners[group].add(setting)
        assert all(len(owner) == 1 for owner in owners.values()), pairs
        assert told_apart(groups, [setting for _, setting in pairs]) == groups
