"""The kinds of trial that train no language model: small computations whose true answer is known."""

from trainables.experiment_configs.dirichlet import DirichletConfig, FitConfig
from trainables.experiment_configs.experiment import ExperimentConfig
from trainables.experiment_configs.hidden_layers import (
    DenseLayerConfig,
    ExpertsLayerConfig,
    HiddenLayerConfig,
    LayerJacobianConfig,
    LayerTaskConfig,
)
from trainables.experiment_configs.press_noise import PressNoiseConfig
from trainables.experiment_configs.true_rank import TrueRankConfig
from trainables.experiment_configs.word_pairs import WordPairsConfig

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
