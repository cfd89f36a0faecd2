"""Training: streams of tokens, averaged SGD, validation, and a loop that can be stopped after any step."""

from trainables.training.loop import MAX_LOSS, DivergedError, PrunedError, Trainer
from trainables.training.streams import mean_loss, parallel_streams
