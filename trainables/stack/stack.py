"""Several trials of the same shapes, trained as one model with a leading axis.

Every trial keeps its `Trainer`: its random streams, its place in the text, its progress and its
checkpoints are those of the trial alone. What the stack holds is the numbers: parameters, moments,
losses and states of all trials in one tensor a name, of which the trainers' are views. A trial
can leave after any step, and another one join."""

from __future__ import annotations

from collections.abc import Sequence

from trainables.stack.outputs import output_kind
from trainables.stack.program import StepProgram
from trainables.stack.weights import Weights
from trainables.training import Trainer


class Stack:
    """Trainers that make their steps together. Each one's epochs end when they would alone: ask it
    after every step."""

    def __init__(self, trainers: Sequence[Trainer]) -> None:
        """The trainers' configs have equal `stack_key`s."""
        # Trials with output layers of one kind stand side by side, so that their part of a tensor
        # is a slice.
        kinds = list(dict.fromkeys(output_kind(trainer.model.output) for trainer in trainers))
        self.trainers = sorted(
            trainers, key=lambda trainer: kinds.index(output_kind(trainer.model.output))
        )
        self.weights = Weights.shared_by([trainer.model for trainer in self.trainers])
        self._program = StepProgram(self.trainers, self.weights)

    def step(self) -> None:
        """One window of every trial: forward, backward, one update."""
        windows = [trainer.next_window() for trainer in self.trainers]
        self._program.run(windows)
        for trainer, window in zip(self.trainers, windows, strict=True):
            trainer.advance(window)

    @staticmethod
    def leave(trainer: Trainer) -> None:
        """Give a trainer that leaves numbers of its own, so that it does not hold those of its
        mates."""
        for parameter in trainer.model.parameters():
            parameter.data = parameter.data.clone()
        tensors, state = trainer.snapshot()
        trainer.restore({name: tensor.detach().clone() for name, tensor in tensors.items()}, state)
