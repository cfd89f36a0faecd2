"""Compare learning rates of a program that fits a line.

python sweep.py examples/command/study.py
"""

from search_spaces.study import Comparison, Lines, Study
from trainables.config import Command

ARGUMENTS = ["--rate={rate}", "--epochs={epochs}", "--seed={seed}"]


def trials():
    """Yield a trial per learning rate."""
    for rate in (0.01, 0.1, 1.0):
        yield Command(["python", "train.py", *ARGUMENTS], files=["train.py"], rate=rate, epochs=20)


STUDY = Study(
    name="line",
    question="Which learning rate fits the line best?",
    trials=trials,
    seeds=5,
    metric="final_loss",
    mode="min",
    scales={"smoke": {"epochs": 2}},
    analyses=(Comparison(baseline="rate=0.1"), Lines(x="rate", logarithmic_x=True)),
)
