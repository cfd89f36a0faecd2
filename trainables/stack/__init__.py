"""Several trials of equal shapes trained as one: a stack. `stack_key` needs no torch.

Shapes: G models, T time steps of the longest window, B batch, N = T B rows, V vocabulary, D width
of the embeddings, C of the contexts.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
