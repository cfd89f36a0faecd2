"""Training: token streams, a recipe per kind of model, and a loop that resumes after any step."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
