from __future__ import annotations

from typing import Any

from trainables.config import (
    CorpusConfig,
    EvaluationConfig,
    GssConfig,
    OutputLayerConfig,
    TransformerConfig,
    TransformerTrainingConfig,
    TransformerTrialConfig,
)


def trial(
    output_layer: OutputLayerConfig | None = None,
    *,
    model: dict[str, Any] | None = None,
    **training: Any,
) -> TransformerTrialConfig:
    shape = {"width": 8, "layers": 2, "heads": 2, "dropout": 0.1} | (model or {})
    settings = {
        "batch_size": 4,
        "window": 12,
        "learning_rate": 0.01,
        "warm_up_tokens": 500,
        "epochs": 4,
    } | training
    return TransformerTrialConfig(
        seed=7,
        corpus=CorpusConfig(name="tiny", sha256="0" * 64),
        model=TransformerConfig(**shape),
        output_layer=output_layer or GssConfig(c=-1.5, k=2.5),
        training=TransformerTrainingConfig(**settings),
        evaluation=EvaluationConfig(window=settings["window"]),
    )
