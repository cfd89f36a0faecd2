"""The kinds of trial that train no language model: small computations whose true answer is known."""

from trainables.config.experiments.dirichlet import DirichletConfig, FitConfig
from trainables.config.experiments.experiment import ExperimentConfig
from trainables.config.experiments.hidden_layers import (
    DenseLayerConfig,
    ExpertsLayerConfig,
    HiddenLayerConfig,
    LayerJacobianConfig,
    LayerTaskConfig,
)
from trainables.config.experiments.press_noise import PressNoiseConfig
from trainables.config.experiments.true_rank import TrueRankConfig
from trainables.config.experiments.word_pairs import WordPairsConfig

__all__ = [
    "DenseLayerConfig",
    "DirichletConfig",
    "ExperimentConfig",
    "ExpertsLayerConfig",
    "FitConfig",
    "HiddenLayerConfig",
    "LayerJacobianConfig",
    "LayerTaskConfig",
    "PressNoiseConfig",
    "TrueRankConfig",
    "WordPairsConfig",
]
