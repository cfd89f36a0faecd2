"""Several trials of the same shapes trained as one: a stack. The trainer of one trial is the
reference for it.

This room alone knows how; which trials can be a stack needs no torch. Benchmarks time the parts of
its step."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
