"""Several trials of the same shapes trained as one: a stack. The trainer of one trial is the reference for it."""

from trainables.stack.stack import Stack
from trainables.stack.throughput import best_size, measured_rates
from trainables.stack.validation import stacked_context_windows, stacked_losses, valid_losses
