"""Training: batches, averaged SGD, validation, and a loop that can be stopped after any step."""

from trainables.training.batches import parallel_streams
from trainables.training.loop import MAX_LOSS, DivergedError, PrunedError, Trainer
from trainables.training.validation import mean_loss
