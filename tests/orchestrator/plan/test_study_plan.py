from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import product

import pytest

from orchestrator.forecast import estimate
from orchestrator.plan import PlanRequest, is_paper_scale, make_plan
from orchestrator.variants import Settings, Variant, without_settings
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES, apply_scale
from search_spaces.study import Study
from search_spaces.transformer import transformer
from tests.support.command import ROOT, sweep
from trainables.config import (
    CorpusConfig,
    GssConfig,
    SoftmaxConfig,
    TrainingConfig,
    TrialConfig,
    WordPairsConfig,
    flat_values,
    output_layer_of,
)
from trainables.errors import UserError
from trainables.parameters import in_millions

RATE, EPOCHS = "training.learning_rate", "training.epochs"


def plan_of(corpus: str, scale: str = "paper", settings: Settings | None = None):  # type: ignore[no-untyped-def]
    return make_plan(
        load_study("gss_grid"), SCALES[scale], corpus, PlanRequest(settings=settings or {})
    )


@pytest.mark.parametrize(
    ("corpus", "ks", "millions", "seconds_per_epoch"),
    [
        ("ptb", [x / 4 for x in range(5, 13)], "24.22", 58),
        ("wikitext-2", [1.5, 2, 2.5, 3], "33.55", 87),
    ],
)
def test_paper_scale_is_published_grid(
    corpus: str, ks: list[float], millions: str, seconds_per_epoch: int
) -> None:
    plan = plan_of(corpus)
    layers = [trial.validated.output_layer for trial in plan.trials]
    assert [(x.c, x.k) for x in layers if isinstance(x, GssConfig)] == [
        (c / 2, k) for c in range(-4, 5) for k in ks
    ]
    estimates = [estimate(trial.validated, plan.corpus) for trial in plan.trials]
    assert {in_millions(costs.parameters) for costs in estimates} == {millions}
    hours = sum(costs.gpu_hours for costs in estimates)
    assert hours == pytest.approx(len(layers) * seconds_per_epoch * 1000 / 3600)


SM_TABLE_6 = {
    "seed": (141, 1881),
    "training.batch_size": (20, 80),
    "training.learning_rate": (20.0, 30.0),
    "model.dropout_embedding": (0.4, 0.65),
    "model.dropout_hidden": (0.3, 0.2),
    "evaluation.rank_contexts": (None, 33_320),
    "model.embedding_width": (400, 400),
    "model.hidden_width": (1150, 1150),
    "model.context_width": (400, 400),
    "model.dropout_output": (0.4, 0.4),
    "model.dropout_embedding_matrix": (0.1, 0.1),
    "model.dropconnect": (0.5, 0.5),
    "training.weight_decay": (1.2e-6, 1.2e-6),
    "training.gradient_clip_norm": (0.25, 0.25),
    "training.bptt": (70, 70),
    "training.activation_regularisation": (2.0, 2.0),
    "training.temporal_activation_regularisation": (1.0, 1.0),
    "training.averaging.switch_epoch": (200, 200),
    "training.epochs": (1000, 1000),
}
"""Values for PTB and WikiText-2, typed from the table independently of the code."""


def test_paper_scale_has_published_hyperparameters() -> None:
    for number, corpus in enumerate(("ptb", "wikitext-2")):
        values = flat_values(plan_of(corpus).trials[0].config)
        expected = {key: pair[number] for key, pair in SM_TABLE_6.items()}
        assert {key: values[key] for key in expected} == expected


def test_explicit_default_keeps_the_trial() -> None:
    plain, spelled = plan_of("ptb"), plan_of("ptb", settings={"training.bptt": (70,)})
    assert [t.trial_id for t in plain.trials] == [t.trial_id for t in spelled.trials]
    assert plain.key != spelled.key
    assert plan_of("ptb", settings={"training.bptt": (35,)}).trials[0].validated.training.bptt == 35


def test_dry_run_needs_no_torch() -> None:
    script = """
import sys
from orchestrator.command.app import main
status = main(["gss_grid", "--scale", "paper", "--dry-run", "--format", "json"])
libraries = ("torch", "ray", "numpy", "scipy", "pandas", "sqlalchemy", "matplotlib")
heavy = [name for name in libraries if name in sys.modules]
print(heavy, file=sys.stderr)
sys.exit(status)
"""
    answer = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stderr.strip() == "[]"
    trials = json.loads(answer.stdout)["trials"]
    assert [t["corpus"] for t in trials] == ["ptb"] * 72 + ["wikitext-2"] * 36
    for trial in trials:
        assert TrialConfig.model_validate(trial["config"]).trial_id == trial["trial_id"]
        assert trial["estimated_gpu_hours"] > 10
        assert "V100" in trial["estimate_basis"]


@pytest.mark.parametrize(
    ("name", "scales"),
    [
        ("dirichlet", ["small", "paper"]),
        ("published", ["smoke", "quick", "small", "paper"]),
        ("press_robustness", ["paper"]),
        ("gss_grid", ["paper"]),
    ],
)
def test_unchanged_scale_is_the_papers(name: str, scales: list[str]) -> None:
    study = load_study(name)
    corpus = "ptb" if study.reads_text else "none"
    plans = {scale: make_plan(study, SCALES[scale], corpus) for scale in SCALES}
    ids = {scale: [trial.trial_id for trial in plan.trials] for scale, plan in plans.items()}
    assert [scale for scale in SCALES if ids[scale] == ids["paper"]] == scales
    assert [scale for scale in SCALES if is_paper_scale(study, scale)] == scales


def test_word_count_has_no_gpu_hours() -> None:
    answer = sweep("published", "--dry-run", "--format", "json")
    for trial in json.loads(answer.stdout)["trials"]:
        assert trial["config"] == WordPairsConfig(seed=0, text=trial["config"]["text"]).model_dump()
        assert trial["parameters"] is trial["estimated_gpu_hours"] is None
        assert trial["estimated_core_hours"] > 0
    table = sweep("published", "--dry-run").stdout
    assert "None" not in table and "0.00M" not in table


def test_swept_values_plan_separate_trials() -> None:
    rates, epochs = (0.01, 0.001), (1, 2)
    swept = plan_of("pydocs", "smoke", {RATE: rates, EPOCHS: epochs})
    ids = {trial.trial_id: trial.name for trial in swept.trials}
    assert len(ids) == len(swept.trials) == len(set(ids.values())) == 4 * 4
    for rate, epoch in product(rates, epochs):
        for trial in plan_of("pydocs", "smoke", {RATE: (rate,), EPOCHS: (epoch,)}).trials:
            completed = f"{trial.name}, {EPOCHS}={epoch}, {RATE}={rate:g}"
            assert ids.pop(trial.trial_id) == completed
            assert without_settings(completed, (EPOCHS, RATE)) == trial.name
    assert not ids
    assert Variant.read(swept.key.overrides).settings == {RATE: rates, EPOCHS: epochs}


def test_unswept_trial_appears_once() -> None:
    study, request = load_study("rank_metrics"), PlanRequest(settings={EPOCHS: (1, 2)})
    swept = make_plan(study, SCALES["smoke"], "markov", request)
    names = [trial.name for trial in swept.trials]
    truths = [name for name in names if name.startswith("truth")]
    assert truths and len(truths) == len(set(truths)) and not any(EPOCHS in name for name in truths)
    once = make_plan(study, SCALES["smoke"], "markov")
    assert len(names) == 2 * len(once.trials) - len(truths)


@pytest.mark.parametrize(
    ("study", "settings", "word"),
    [
        ("gss_grid", {"output_layer.c": (1, 2)}, "Drop the --set"),
        ("fair_capacity", {"training.epochs": (1, 2)}, "one value"),
    ],
)
def test_impossible_settings_are_refused(study: str, settings: Settings, word: str) -> None:
    with pytest.raises(UserError, match=word):
        make_plan(load_study(study), SCALES["smoke"], "pydocs", PlanRequest(settings=settings))


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_model_option_replaces_every_model(scale: str) -> None:
    study, size = load_study("gss_grid"), SCALES[scale]
    plain = make_plan(study, size, "ptb", PlanRequest(model="lstm"))
    other = make_plan(study, size, "ptb", PlanRequest(model="transformer"))
    assert plain.key == make_plan(study, size, "ptb").key
    assert [t.name for t in other.trials] == [t.name for t in plain.trials]
    assert Variant.read(other.key.overrides) == Variant(model="transformer")
    for trial, lstm in zip(other.trials, plain.trials, strict=True):
        layer, seed = output_layer_of(lstm.validated), lstm.validated.seed
        assert isinstance(lstm.validated, TrialConfig) and layer is not None
        recipe = transformer(lstm.validated.corpus, layer, seed=seed)
        corpus = trial.validated.corpus  # type: ignore[union-attr]
        written = recipe.model_copy(update={"corpus": corpus})
        assert trial.validated == apply_scale(SCALES[scale], written)


def test_trial_is_named_by_varying_settings() -> None:
    rates = (10.0, 20.0, 20.0000001)

    def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
        for seed in (1, 2):
            for rate in rates:
                training = TrainingConfig(learning_rate=rate)
                yield TrialConfig(
                    seed=seed, corpus=corpus, output_layer=SoftmaxConfig(), training=training
                )
            yield TrialConfig(seed=seed, corpus=corpus, output_layer=GssConfig(c=0.0, k=2.0))

    study = Study(name="rates", trials=trials, corner=lambda trials: trials[1:4:2])
    groups = [
        *(f"softmax, training.learning_rate={rate / 1000:.9g}" for rate in rates),
        "gss c=0 k=2",
    ]
    plan = make_plan(study, SCALES["quick"], "pydocs")
    assert [trial.name for trial in plan.trials] == [
        f"{group} seed={seed}" for seed in (1, 2) for group in groups
    ]
    assert plan.measurements == ("perplexity@1", "spectrum@1")
    for settings in ({}, {"training.epochs": (2,)}):
        smoke = make_plan(study, SCALES["smoke"], "pydocs", PlanRequest(settings=settings))
        assert [trial.name for trial in smoke.trials] == [
            f"{group} seed=1" for group in groups[1::2]
        ]
