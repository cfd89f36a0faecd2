"""Language-model trials that take seconds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.plan import Plan, PlanRequest, make_plan
from orchestrator.storage import FolderStorage
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES
from tests.support.command import TIMES
from trainables.config import (
    CorpusConfig,
    EvaluationConfig,
    OutputLayerConfig,
    TransformerConfig,
    TransformerTrainingConfig,
    TransformerTrialConfig,
    TrialConfig,
)
from trainables.corpora import identity
from trainables.runtime import Runtime
from trainables.trial import run_trial
from trainables.trial_folder import TrialOutcome

FILES = ("lock", "config.json", "log.txt", "result.json", "spectrum.npy", "kept.safetensors")


def smoke_plan(study: str | Path, corpus: str = "pydocs", **request: Any) -> Plan:
    return make_plan(load_study(str(study)), SCALES["smoke"], corpus, PlanRequest(**request))


@cache
def smoke_trial(**settings: object) -> TrialConfig:
    plan = smoke_plan("gss_grid", settings={key: (value,) for key, value in settings.items()})
    config = plan.trials[0].validated
    assert isinstance(config, TrialConfig)
    return config


def smoke_transformer(
    layer: OutputLayerConfig, *, epochs: int = 3, precision: str = "float32"
) -> TransformerTrialConfig:
    corpus = identity("pydocs", data_dir=None)
    training: dict[str, object] = {"batch_size": 8, "window": 16, "learning_rate": 0.01}
    training |= {"warm_up_tokens": 500, "epoch_tokens": 2_000, "epochs": epochs}
    return TransformerTrialConfig(
        seed=3,
        corpus=CorpusConfig(name="pydocs", sha256=corpus.sha256, vocabulary_limit=200),
        model=TransformerConfig(width=16, layers=2, heads=2, head="untied", head_rank=6),
        output_layer=layer,
        training=TransformerTrainingConfig.model_validate(training | {"precision": precision}),
        evaluation=EvaluationConfig(
            window=16, valid_tokens=600, test_tokens=600, test_batch_size=2, epoch_rank_contexts=100
        ),
    )


def train_here(storage: Path, *plans: Plan) -> None:
    """Train trials in this process. A later command then finds them done and starts no workers."""
    measurements: dict[str, dict[str, None]] = {}
    for plan in plans:
        for trial in plan.trials:
            measurements.setdefault(trial.trial_id, {}).update(dict.fromkeys(plan.measurements))
    for plan in plans:
        runtime = Runtime(data_dir=plan.data_dir, benchmarks_dir=plan.benchmarks_dir)
        for trial in plan.trials:
            names = measurements.pop(trial.trial_id, None)
            if names is not None:
                folder = FolderStorage(storage).trial(trial.trial_id).path
                folder.mkdir(parents=True)
                run_trial(
                    trial.validated, directory=folder, runtime=runtime, measurements=tuple(names)
                )


def without_clocks(outcome: TrialOutcome) -> dict[str, Any]:
    content = outcome.model_dump(mode="json")
    for metrics in content["measurements"].values():
        for name in TIMES:
            metrics.pop(name, None)
    for epoch in content["epochs"]:
        del epoch["seconds"]
    return content


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
