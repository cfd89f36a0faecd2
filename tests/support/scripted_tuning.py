"""A small tuning whose losses are a formula of the config. Starts and ends go to one
append-only file, which survives the death of any process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.plan import PlanRequest, Search, TuningPlan, plan_tuning
from orchestrator.store.records import PlannedTrial, StudyKey
from orchestrator.store.store import Store
from search_spaces.tuning import Dimension, Tuning
from tests.support.scripted_trials import log, write
from tests.support.store_rows import epoch
from trainables.config import CorpusConfig, SoftmaxConfig, TrainingConfig, TrialConfig
from trainables.trial_folder import EpochMetrics, TrialFolder, TrialOutcome

EPOCHS = 4
STEP_S = 0.05
CORPUS = CorpusConfig(name="none", sha256="0" * 64)
KEY = StudyKey(study="tuned", scale="paper", corpus="none")


def side(batch_size: int) -> Callable[[CorpusConfig], TrialConfig]:
    training = TrainingConfig(batch_size=batch_size, epochs=EPOCHS)
    return lambda corpus: TrialConfig(
        seed=1, corpus=corpus, output_layer=SoftmaxConfig(), training=training
    )


TUNING = Tuning(
    sides={"narrow": side(10), "wide": side(20)},
    stage1=(Dimension(key="model.dropout_hidden", short="dh", values=(0.1, 0.2)),),
    stage2=(
        Dimension(key="model.dropout_embedding", short="de", values=(0.0, 0.1, 0.2, 0.3, 0.5)),
        Dimension(key="model.dropout_output", short="do", values=(0.0, 0.1, 0.2, 0.3)),
    ),
    seeds=(11, 12),
)


def plan(search: Search | None = None, budget: int | None = 5) -> TuningPlan:
    bases = {side: base(CORPUS) for side, base in TUNING.sides.items()}
    request = PlanRequest(search=search, budget=budget)
    return plan_tuning(TUNING, bases, "paper", lambda config: config, request)


def certain(tuning: TuningPlan) -> list[PlannedTrial]:
    return list(tuning.certain())


def table(store: Store) -> list[tuple[str, str, str, list[float]]]:
    return [
        (
            row.name,
            row.trial_id,
            row.state,
            [epoch.numbers["valid_loss"] for epoch in store.epochs(row.trial_id)],
        )
        for row in store.trials(KEY)
    ]


def losses(config: TrialConfig) -> list[float]:
    model = config.model
    least = (
        3
        + (model.dropout_embedding - 0.3) ** 2
        + (model.dropout_output - 0.1) ** 2
        + model.dropout_hidden
    )
    chance = int(config.trial_id[:6], 16) / 16**6
    return [least + chance / 20 + (1 + chance) / epoch for epoch in range(1, EPOCHS + 1)]


def epochs_of(config: TrialConfig) -> list[EpochMetrics]:
    return [epoch(number, valid_loss=loss) for number, loss in enumerate(losses(config), start=1)]


def run_scripted_tuning(
    config: TrialConfig,
    *,
    directory: Path,
    on_epoch: Callable[[EpochMetrics], None],
    stop_above: Mapping[int, float] | None,
    **_: Any,
) -> TrialOutcome:
    folder = TrialFolder(directory, config.trial_id)
    with folder.locked():
        done = folder.outcome()
        if done is not None:
            return done
        checkpoint = directory / "epoch.txt"
        first = int(checkpoint.read_text()) if checkpoint.exists() else 0
        log(directory, f"start {config.trial_id} {first}")
        rows = epochs_of(config)
        reached = first
        while reached < EPOCHS and not (reached and _stops(rows[reached - 1], stop_above)):
            time.sleep(STEP_S)
            reached += 1
            write(checkpoint, str(reached))
            on_epoch(rows[reached - 1])
        outcome = folder.write_result(ending(config, reached), None)
        # A dead driver's worker may have pruned the trial meanwhile; then nothing was trained
        # here.
        if reached > first:
            log(directory, f"{outcome.state} {config.trial_id}")
        return outcome


def ending(config: TrialConfig, epochs: int) -> TrialOutcome:
    rows = tuple(epochs_of(config)[:epochs])
    if epochs < EPOCHS:
        return TrialOutcome(
            trial_id=config.trial_id, state="pruned", cause="not good enough", epochs=rows
        )
    best = {"best@1": {"valid_perplexity": math.exp(rows[-1].valid_loss)}}
    return TrialOutcome(trial_id=config.trial_id, state="done", epochs=rows, measurements=best)


def _stops(row: EpochMetrics, stop_above: Mapping[int, float] | None) -> bool:
    return row.valid_loss > (stop_above or {}).get(row.epoch, math.inf)
