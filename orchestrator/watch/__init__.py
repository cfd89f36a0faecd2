"""Observers of a sweep: terminal, Ray's metrics, MLflow, TensorBoard."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
