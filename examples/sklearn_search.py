"""Search for the support vector machine that reads digits best; needs scikit-learn.

python sweep.py examples/sklearn_search.py
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from search_spaces.spaces import Search, log_range
from search_spaces.study import Study
from trainables.config import Trainable


class SupportVectors(Trainable):
    """A support vector machine on a random half of the digits, which the seed draws."""

    c: float = 1.0
    gamma: float = 1e-3
    train_size: int = 400

    def train(self, trial):
        """Fit the machine, and return the accuracy on other digits."""
        pixels, digits = load_digits(return_X_y=True)
        train_x, test_x, train_y, test_y = train_test_split(
            pixels, digits, train_size=self.train_size, random_state=trial.seed
        )
        machine = SVC(C=self.c, gamma=self.gamma).fit(train_x, train_y)
        return {"accuracy": machine.score(test_x, test_y), "vectors": len(machine.support_)}


STUDY = Study(
    name="digits_search",
    question="Which C and gamma read digits best?",
    trials=Search(
        SupportVectors(),
        budget=20,
        method="tpe",
        c=log_range(1e-2, 1e2, 9),
        gamma=log_range(1e-4, 1e-1, 7),
    ),
    metric="accuracy",
    mode="max",
    scales={"smoke": {"train_size": 100}},
)
