"""Fit a line by gradient descent; prints a JSON object per epoch, and one with the result.

This program knows nothing of sweeps: python train.py --rate 0.1 --seed 1
"""

import argparse
import json
import random

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()

draw = random.Random(options.seed)
points = [(x / 100, 3 * x / 100 + draw.gauss(1, 0.1)) for x in range(100)]
slope = start = loss = 0.0
for epoch in range(options.epochs):
    for x, y in draw.sample(points, len(points)):
        error = slope * x + start - y
        slope, start = slope - options.rate * error * x, start - options.rate * error
    loss = sum((slope * x + start - y) ** 2 for x, y in points) / len(points)
    print(json.dumps({"epoch": epoch, "loss": loss}), flush=True)
print(json.dumps({"final_loss": loss, "slope": slope}))
