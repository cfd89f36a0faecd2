"""Several trials of the same shapes trained as one: a stack. The reference is the trainer of one
trial.

Which trials can share a stack is decided without torch. Benchmarks time the parts of its step."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
