"""Training: streams of tokens, recipes of both kinds of model, and a loop that can be stopped after
any step."""

from trainables.training.averaging import WeightAverage
from trainables.training.loop import (
    ADAM_STATE,
    MAX_LOSS,
    STEPS_PER_LOOK,
    Trainer,
)
from trainables.training.optimizers import EagerSGD
from trainables.training.progress import DivergedError, PrunedError
from trainables.training.recipe import Window
from trainables.training.streams import MAX_EXTRA, ROWS_PER_LOSS, mean_loss, parallel_streams
