"""Run a study: recover earlier results, run missing trials, write the report."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
