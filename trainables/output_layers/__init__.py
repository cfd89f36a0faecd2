"""Output layers: from hidden states to log-probabilities and a training loss.

Shapes: G models trained together, T time, B batch, N = T B rows (contexts), K experts (1 without a
mixture), C width of context vectors, D width of embeddings, V vocabulary. A chunk has n contexts
and m = n K rows of logits.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
