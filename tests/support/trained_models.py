"""A briefly trained tiny model for the tests of measurements."""

from __future__ import annotations

import copy
import functools

from tests.support import tiny_trial as tiny
from trainables.config import OutputLayerConfig
from trainables.language_model.awd_lstm import AwdLstm
from trainables.runtime import Runtime
from trainables.training.loop import Trainer


def trained(layer: OutputLayerConfig, epochs: int = 2) -> AwdLstm:
    """A copy of the tiny model after some epochs, in evaluation mode; a process trains each once."""
    return copy.deepcopy(_trained(layer, epochs))


@functools.cache
def _trained(layer: OutputLayerConfig, epochs: int) -> AwdLstm:
    config = tiny.trial(output_layer=layer, epochs=epochs, learning_rate=20.0, activation_regularisation=0.0)
    trainer = Trainer(config, tiny.corpus(), Runtime())
    tiny.train(trainer)
    return trainer.model.eval()
