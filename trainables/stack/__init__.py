"""Several trials of the same shapes trained as one: a stack. The trainer of one trial is the
reference for it.

The parts of its step are here for who times them.
"""

from trainables.stack.kinds import draws_of, stacked_model
from trainables.stack.masks import StackedDraws
from trainables.stack.model import StackedModel, stacked_states
from trainables.stack.stack import Stack
from trainables.stack.throughput import best_size, measured_rates
from trainables.stack.update import StackedUpdate
from trainables.stack.validation import stacked_context_windows, stacked_losses, valid_losses
from trainables.stack.weights import OUTPUT, Weights
