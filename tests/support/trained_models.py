"""A briefly trained tiny model for the tests of measurements."""

from __future__ import annotations

from tests.support import tiny_trial as tiny
from trainables.config import OutputLayerConfig
from trainables.language_model.awd_lstm import AwdLstm
from trainables.runtime import Runtime
from trainables.training.loop import Trainer


def trained(layer: OutputLayerConfig, epochs: int = 2) -> AwdLstm:
    """The tiny model after some epochs, in evaluation mode."""
    config = tiny.trial(output_layer=layer, epochs=epochs, learning_rate=20.0, activation_regularisation=0.0)
    trainer = Trainer(config, tiny.corpus(), Runtime())
    while len(trainer.progress.epochs) < epochs:
        trainer.step()
        if trainer.epoch_is_over():
            trainer.end_epoch()
    return trainer.model.eval()
