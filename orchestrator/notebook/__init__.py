"""What a notebook asks for: data frames of what the store holds, a sweep, a trained model.

`frames` reads the store, `sweeps` runs a command, `models` opens what a trial has kept.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
