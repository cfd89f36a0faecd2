"""How wide must an MLP be to read handwritten digits? Needs PyTorch and scikit-learn.

python sweep.py examples/digits.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.functional import cross_entropy

from search_spaces.study import Comparison, Lines, Study
from trainables.config import Trainable


class Mlp(Trainable):
    """A network with one hidden layer. Its fields are the settings of a trial."""

    width: int = 64
    learning_rate: float = 1e-3
    epochs: int = 20

    def train(self, trial):
        """Train. Without a return value, the numbers of the last epoch are the result."""
        pixels, digits = load_digits(return_X_y=True)
        parts = train_test_split(np.float32(pixels / 16), digits, test_size=0.5, random_state=0)
        train_x, test_x, train_y, test_y = (
            torch.tensor(part, device=trial.device) for part in parts
        )

        model = nn.Sequential(nn.Linear(64, self.width), nn.ReLU(), nn.Linear(self.width, 10))
        model.to(trial.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.learning_rate)
        first = trial.restore(model=model, optimizer=optimizer)  # 0, or after the last checkpoint
        for epoch in range(first, self.epochs):
            for batch in torch.randperm(len(train_x)).split(32):
                loss = cross_entropy(model(train_x[batch]), train_y[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                accuracy = (model(test_x).argmax(1) == test_y).float().mean()
            trial.report(epoch, train_loss=loss, test_accuracy=accuracy)


STUDY = Study(
    name="digits",
    question="How wide must the hidden layer be?",
    trials=lambda: [Mlp(width=width) for width in (4, 16, 64)],
    seeds=5,
    metric="test_accuracy",
    mode="max",
    scales={"smoke": {"epochs": 2}},
    analyses=(Comparison(baseline="width=64"), Lines(x="width", logarithmic_x=True)),
)
