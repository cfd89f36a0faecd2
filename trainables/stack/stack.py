"""Several trials of equal shapes, trained as one model with a leading axis.

Every trial keeps its `Trainer`, with the random streams, progress and checkpoints of a trial
trained alone. Trials can leave or join after any step.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainables.stack.outputs import output_kind
from trainables.stack.program import StepProgram
from trainables.stack.weights import Weights
from trainables.training import Trainer


class Stack:
    """Trains several trials together, step by step. Their configs have the same `stack_key`.

    Epochs end at different steps, so check for ends after every step.
    """

    def __init__(self, trainers: Sequence[Trainer]) -> None:
        # Trials with output layers of one kind are adjacent, so that their part of a tensor is a
        # slice.
        kinds = list(dict.fromkeys(output_kind(trainer.model.output) for trainer in trainers))
        self.trainers = sorted(
            trainers, key=lambda trainer: kinds.index(output_kind(trainer.model.output))
        )
        self.weights = Weights.shared_by([trainer.model for trainer in self.trainers])
        self._program = StepProgram(self.trainers, self.weights)

    def step(self) -> None:
        """Train every trial on one window."""
        windows = [trainer.next_window() for trainer in self.trainers]
        self._program.run(windows)
        for trainer, window in zip(self.trainers, windows, strict=True):
            trainer.advance(window)

    @staticmethod
    def leave(trainer: Trainer) -> None:
        """Copy a leaving trainer's tensors, so that the stack's memory can be freed."""
        for parameter in trainer.model.parameters():
            parameter.data = parameter.data.clone()
        tensors, state = trainer.snapshot()
        trainer.restore({name: tensor.detach().clone() for name, tensor in tensors.items()}, state)
