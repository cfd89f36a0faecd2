"""Training: streams of tokens, averaged SGD, validation, and a loop that can be stopped after any step."""

from trainables.training.averaging import WeightAverage
from trainables.training.loop import ADAM_STATE, MAX_LOSS, STEPS_PER_LOOK, DivergedError, PrunedError, Trainer, Window
from trainables.training.optimizers import EagerSGD
from trainables.training.streams import MAX_EXTRA, ROWS_PER_LOSS, mean_loss, parallel_streams
