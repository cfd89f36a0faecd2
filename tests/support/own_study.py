"""A study of a user's own code: a small network on generated data, whose trials take seconds.

Its trials draw from all kinds of random generators, and their final metrics have a digest of the
whole state. Each trial writes a diary of its attempts and epochs into its folder.
"""

import hashlib
import random
import time
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from search_spaces.study import Comparison, Lines, Study
from trainables.config import Trainable


class Scaler:
    """Like torch's GradScaler: an object with a state that is no module."""

    def __init__(self) -> None:
        self.scale, self.steps = 1.0, torch.zeros(1)

    def state_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.scale, self.steps = state["scale"], state["steps"]


class Mlp(Trainable):
    width: int = 8
    learning_rate: float = 0.01
    epochs: int = 12
    pause_s: float = 0.2
    restores: bool = True

    def train(self, trial: Any) -> dict[str, Any]:
        data = torch.Generator().manual_seed(0)
        inputs = torch.randn(256, 4, generator=data)
        classes = (inputs[:, 0] * inputs[:, 1] > 0).long()
        middle = [torch.nn.Linear(self.width, self.width) for _ in range(2)]
        middle[1].weight = middle[0].weight
        first_layer, last_layer = torch.nn.Linear(4, self.width), torch.nn.Linear(self.width, 2)
        model = torch.nn.Sequential(first_layer, *middle, torch.nn.Dropout(0.2), last_layer)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.learning_rate)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
        scaler, order = Scaler(), np.random.default_rng(trial.seed)
        best: dict[str, Any] = {"loss": float("inf"), "mean": np.float32(0.1)}
        noise, mask = (torch.Generator().manual_seed(seed) for seed in (1, 2))
        parts: dict[str, Any] = {
            "model": model,
            "optimizer": optimizer,
            "schedule": schedule,
            "scaler": scaler,
            "best": best,
            "order": order,
            "noise": noise,
            "mask": mask,
        }
        diary = trial.folder / "diary.txt"
        checkpoints = len(list(trial.folder.parent.glob("checkpoint-*.safetensors")))
        first = trial.restore(**parts) if self.restores else 0
        with diary.open("a") as file:
            print("start", first, checkpoints, file=file)
        for epoch in range(first, self.epochs):
            time.sleep(self.pause_s)
            for rows in np.split(order.permutation(len(inputs)), 4):
                kept = torch.rand(64, 4, generator=mask) > 0.1 * random.random()
                shift = 0.1 * torch.randn(4, generator=noise) * np.random.rand()
                loss = cross_entropy(model(inputs[rows] * kept + shift), classes[rows])
                optimizer.zero_grad()
                (scaler.scale * loss).backward()
                optimizer.step()
                scaler.scale *= 1.01
                scaler.steps += 1
            schedule.step()
            best["loss"] = min(best["loss"], loss.item())
            best["mean"] = best["mean"] * np.float32(0.9) + np.float32(loss.item())
            with diary.open("a") as file:
                print(epoch, file=file)
            trial.report(epoch, loss=loss, best=best["loss"], mean=best["mean"])
        digest = hashlib.sha256(repr([scaler.state_dict(), best, schedule.state_dict()]).encode())
        for tensors in (model.state_dict(), *optimizer.state_dict()["state"].values()):
            for tensor in tensors.values():
                digest.update(tensor.numpy().tobytes())
        model.eval()
        accuracy = (model(inputs).argmax(1) == classes).float().mean()
        return {"accuracy": accuracy, "best_loss": best["loss"], "digest": digest.hexdigest()}


STUDY = Study(
    name="own",
    trials=lambda: [Mlp(width=w, learning_rate=lr) for w in (4, 16) for lr in (0.01, 0.03)],
    seeds=2,
    metric="accuracy",
    mode="max",
    analyses=(Comparison(baseline="width=4, learning_rate=0.01"), Lines(x="width")),
)
