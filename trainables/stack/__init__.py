"""Stacks: several trials of equal shapes, trained as one. `stack_key` needs no torch.

Shapes: G models, T time steps of the longest window, B batch, N = T B rows, V vocabulary, D width
of embeddings, C width of contexts.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
