"""A study of a user's own code: a small network on generated data, whose trials take a second."""

import time
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from search_spaces.study import Comparison, Lines, Study
from trainables.config import Trainable


class Mlp(Trainable):
    width: int = 8
    learning_rate: float = 0.01
    epochs: int = 12
    pause_s: float = 0.06

    def train(self, trial: Any) -> dict[str, Any]:
        data = torch.Generator().manual_seed(0)
        inputs = torch.randn(256, 4, generator=data)
        classes = (inputs[:, 0] * inputs[:, 1] > 0).long()
        model = torch.nn.Sequential(
            torch.nn.Linear(4, self.width),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(self.width, 2),
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=self.learning_rate)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
        best = {"loss": float("inf")}
        diary = trial.folder / "diary.txt"
        checkpoints = len(list(trial.folder.parent.glob("checkpoint-*.safetensors")))
        first = trial.restore(model=model, optimizer=optimizer, schedule=schedule, best=best)
        with diary.open("a") as file:
            print("start", first, checkpoints, file=file)
        for epoch in range(first, self.epochs):
            time.sleep(self.pause_s)
            for rows in torch.randperm(len(inputs)).split(64):
                loss = cross_entropy(model(inputs[rows]), classes[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            schedule.step()
            best["loss"] = min(best["loss"], loss.item())
            with diary.open("a") as file:
                print(epoch, file=file)
            trial.report(epoch, loss=loss, best=best["loss"])
        model.eval()
        accuracy = (model(inputs).argmax(1) == classes).float().mean()
        return {"accuracy": accuracy, "best_loss": best["loss"]}


STUDY = Study(
    name="own",
    trials=lambda: [Mlp(width=w, learning_rate=lr) for w in (4, 16) for lr in (0.01, 0.03)],
    seeds=2,
    metric="accuracy",
    mode="max",
    analyses=(Comparison(baseline="width=4, learning_rate=0.01"), Lines(x="width")),
)
