"""Stacks: several trials of equal tensor shapes, trained as one model.

Importing `stack_key` does not import torch.

Shapes: G models, T time steps of the longest window, B batch, N = T B rows, V vocabulary, D width
of embeddings, C width of contexts.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
