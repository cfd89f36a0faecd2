"""The plan: the published grids, scales, overrides, identities; a scale is the paper's where it
changes no trial."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from orchestrator.forecast import estimate
from orchestrator.plan import PlanRequest, is_paper_scale, make_plan, scale_named
from orchestrator.sweep.announcement import paper_command
from orchestrator.variants import parse_overrides
from orchestrator.variants.overrides import apply_overrides
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES
from search_spaces.study import Study
from tests.support.command import ROOT, sweep
from trainables.config import (
    CorpusConfig,
    EtAsgdConfig,
    GssConfig,
    NtAsgdConfig,
    SoftmaxConfig,
    TrainingConfig,
    TrialConfig,
    WordPairsConfig,
)
from trainables.config.kinds import output_layer_of
from trainables.parameters import in_millions


def plan_of(corpus: str, scale: str = "paper", overrides: dict[str, object] | None = None):  # type: ignore[no-untyped-def]
    return make_plan(
        load_study("gss_grid"), scale_named(scale), corpus, PlanRequest(overrides=overrides or {})
    )


@pytest.mark.parametrize(
    ("corpus", "cs", "ks", "millions", "epochs_hours"),
    [
        (
            "ptb",
            [x / 2 for x in range(-4, 5)],
            [x / 4 for x in range(5, 13)],
            "24.22",
            72 * 58 * 1000 / 3600,
        ),
        (
            "wikitext-2",
            [x / 2 for x in range(-4, 5)],
            [1.5, 2.0, 2.5, 3.0],
            "33.55",
            36 * 87 * 1000 / 3600,
        ),
    ],
)
def test_paper_scale_is_the_published_grid(
    corpus: str, cs: list[float], ks: list[float], millions: str, epochs_hours: float
) -> None:
    plan = plan_of(corpus)
    trials = plan.trials
    layers = [trial.config.output_layer for trial in trials]
    assert [(x.c, x.k) for x in layers if isinstance(x, GssConfig)] == [
        (c, k) for c in cs for k in ks
    ]
    assert {in_millions(trial.parameters) for trial in trials} == {millions}
    assert sum(estimate(trial.config, plan.corpus).gpu_hours for trial in trials) == pytest.approx(
        epochs_hours
    )


def test_paper_scale_has_the_hyperparameters_of_sm_table_6() -> None:
    """Typed in here from the table, not read from the code."""
    ptb, wikitext = plan_of("ptb").trials[0].config, plan_of("wikitext-2").trials[0].config
    assert (ptb.seed, wikitext.seed) == (141, 1881)
    assert (ptb.training.batch_size, wikitext.training.batch_size) == (20, 80)
    assert (ptb.training.learning_rate, wikitext.training.learning_rate) == (20.0, 30.0)
    assert (ptb.model.dropout_embedding, wikitext.model.dropout_embedding) == (0.4, 0.65)
    assert (ptb.model.dropout_hidden, wikitext.model.dropout_hidden) == (0.3, 0.2)
    assert (ptb.evaluation.rank_contexts, wikitext.evaluation.rank_contexts) == (None, 33_320)
    for config in (ptb, wikitext):
        model, training = config.model, config.training
        assert (model.embedding_width, model.hidden_width, model.context_width) == (400, 1150, 400)
        assert (model.dropout_output, model.dropout_embedding_matrix, model.dropconnect) == (
            0.4,
            0.1,
            0.5,
        )
        assert (training.weight_decay, training.gradient_clip_norm, training.bptt) == (
            1.2e-6,
            0.25,
            70,
        )
        assert (
            training.activation_regularisation,
            training.temporal_activation_regularisation,
        ) == (2.0, 1.0)
        assert (training.averaging, training.epochs) == (EtAsgdConfig(switch_epoch=200), 1000)


def test_a_default_written_out_with_set_is_the_same_trial() -> None:
    plain, spelled = plan_of("ptb"), plan_of("ptb", overrides={"training.bptt": 70})
    assert [t.trial_id for t in plain.trials] == [t.trial_id for t in spelled.trials]
    assert plain.key != spelled.key
    assert plan_of("ptb", overrides={"training.bptt": 35}).trials[0].config.training.bptt == 35


def test_overrides_are_json_or_text() -> None:
    settings = ["a=1", "b=0.5", "c=null", "d=word", 'e="1"']
    assert parse_overrides(settings) == {"a": 1, "b": 0.5, "c": None, "d": "word", "e": "1"}
    config = plan_of("ptb").trials[0].config
    [changed] = apply_overrides(
        [config], {"training.averaging": {"name": "nt_asgd"}, "corpus.vocabulary_limit": 50}
    )
    assert isinstance(changed, TrialConfig)
    assert changed.training.averaging == NtAsgdConfig(nonmonotone_interval=5)
    assert changed.corpus.vocabulary_limit == 50
    [other] = apply_overrides([config], {"output_layer": {"name": "softmax"}})
    assert output_layer_of(other) == SoftmaxConfig()


def test_dry_run_prints_an_object_a_trial_and_imports_neither_torch_nor_ray() -> None:
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
    trials = json.loads(answer.stdout)
    assert [t["corpus"] for t in trials] == ["ptb"] * 72 + ["wikitext-2"] * 36
    for trial in trials:
        assert TrialConfig.model_validate(trial["config"]).trial_id == trial["trial_id"]
        assert trial["estimated_gpu_hours"] > 10
        assert "V100" in trial["estimate_basis"]


def test_what_the_papers_full_set_costs_is_what_the_documentation_says() -> None:
    said = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    answer = sweep("all", "--scale", "paper", "--dry-run")
    found = re.search(
        r"All together: ([\d,]+) different trials, estimated ([\d,]+) GPU-hours", answer.stdout
    )
    assert found is not None, answer.stdout
    trials, hours = found.groups()
    assert f"{trials} different trials and estimates {hours} GPU-hours" in said
    for gpus, days in re.findall(r"^\| (\d+) \| [^|]+ \| ([\d.]+) \|$", said, re.MULTILINE):
        assert float(days) == pytest.approx(int(hours.replace(",", "")) / int(gpus) / 24, abs=0.06)


@pytest.mark.parametrize(
    ("name", "scales"),
    [
        ("dirichlet", ["small", "paper"]),
        ("layer_jacobian", ["small", "paper"]),
        ("layer_gates", ["small", "paper"]),
        ("published", ["smoke", "quick", "small", "paper"]),
        ("press_robustness", ["paper"]),
        ("gss_grid", ["paper"]),
    ],
)
def test_a_scale_that_changes_no_trial_is_the_papers_whatever_its_name(
    name: str, scales: list[str]
) -> None:
    study = load_study(name)
    corpus = "ptb" if study.reads_text else "none"
    plans = {scale: make_plan(study, scale_named(scale), corpus) for scale in SCALES}
    ids = {scale: [trial.trial_id for trial in plan.trials] for scale, plan in plans.items()}
    assert [scale for scale in SCALES if ids[scale] == ids["paper"]] == scales
    assert [scale for scale in SCALES if is_paper_scale(study, scale)] == scales
    for scale, plan in plans.items():
        printed = paper_command(name, study, plan.key, ())
        assert (printed is None) == (scale in scales)
        assert printed is None or printed.startswith(f"python sweep.py {name} --scale paper")


def test_a_dry_run_leaves_out_what_a_count_of_words_has_not() -> None:
    answer = sweep("published", "--dry-run", "--format", "json")
    for trial in json.loads(answer.stdout):
        assert trial["config"] == WordPairsConfig(seed=0, text=trial["config"]["text"]).model_dump()
        assert (
            trial["parameters"]
            is trial["estimated_gpu_hours"]
            is trial["estimated_gpu_memory_gb"]
            is None
        )
        assert trial["estimated_core_hours"] > 0
    table = sweep("published", "--dry-run").stdout
    assert "None" not in table and "0.00M" not in table


def test_by_default_a_trial_is_named_by_what_varies_besides_the_seed_at_any_scale() -> None:
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
    groups = [*(f"softmax, training.learning_rate={rate:.9g}" for rate in rates), "gss c=0 k=2"]
    plan = make_plan(study, scale_named("quick"), "pydocs")
    assert [trial.name for trial in plan.trials] == [
        f"{group} seed={seed}" for seed in (1, 2) for group in groups
    ]
    assert plan.measurements == ("perplexity@1", "spectrum@1")
    for overrides in ({}, {"training.epochs": 2}):
        smoke = make_plan(study, scale_named("smoke"), "pydocs", PlanRequest(overrides=overrides))
        assert [trial.name for trial in smoke.trials] == [
            f"{group} seed=1" for group in groups[1::2]
        ]
