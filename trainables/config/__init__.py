"""Every config class: the complete description of a trial, and its identity."""

from trainables.config.language_model import (
    MIN_STREAM,
    AveragingConfig,
    CorpusConfig,
    EtAsgdConfig,
    EvaluationConfig,
    LanguageModelConfig,
    NtAsgdConfig,
    TrainingConfig,
    TrialConfig,
)
from trainables.config.output_layer import (
    CustomConfig,
    GssConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MocConfig,
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftmaxConfig,
)

__all__ = [
    "MIN_STREAM",
    "AveragingConfig",
    "CorpusConfig",
    "CustomConfig",
    "EtAsgdConfig",
    "EvaluationConfig",
    "GssConfig",
    "LanguageModelConfig",
    "LmsPlifConfig",
    "LmsPlifFrozenConfig",
    "MocConfig",
    "MonotoneNnConfig",
    "MosConfig",
    "MosPlifConfig",
    "NtAsgdConfig",
    "OutputLayerConfig",
    "SigSoftmaxConfig",
    "SoftmaxConfig",
    "TrainingConfig",
    "TrialConfig",
]
