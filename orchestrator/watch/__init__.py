"""Everyone who follows a sweep: terminal, metrics of Ray, MLflow, TensorBoard."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
