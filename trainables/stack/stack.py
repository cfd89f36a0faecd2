"""Several trials of equal shapes, trained as one model with a leading axis.

Every trial keeps its `Trainer`, with the random streams, progress and checkpoints of a trial
trained alone. Trials can leave or join after any step.

A step has two parts: decisions in Python, and computation on a device. A GPU captures the
computation as a CUDA graph, once per length of the longest window. So the computation must obey the
rules of `trainables.device.Graphs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from trainables.device import graphs_on, products_in, write_numbers
from trainables.stack.kinds import draws_of, penalties_of, stacked_model
from trainables.stack.lstm import StackedState
from trainables.stack.masks import StackedDraws
from trainables.stack.model import stacked_states
from trainables.stack.outputs import output_kind
from trainables.stack.update import StackedUpdate
from trainables.stack.weights import Weights
from trainables.training import Trainer

# Random lengths are within 15 of bptt or, rarely, of bptt / 2.
MOST_GRAPHS = 64
"""Maximum number of CUDA graphs, one per window length."""


class Stack:
    """Trains several trials together, step by step. Their configs have the same `stack_key`.

    Epochs end at different steps, so check for ends after every step.
    """

    def __init__(self, trainers: Sequence[Trainer]) -> None:
        # Trials with output layers of one kind are adjacent, so that their part of a tensor is a
        # slice.
        kinds = list(dict.fromkeys(output_kind(trainer.model.output) for trainer in trainers))
        self.trainers = trainers = sorted(
            trainers, key=lambda trainer: kinds.index(output_kind(trainer.model.output))
        )
        models = [trainer.model for trainer in trainers]
        weights = Weights.shared_by(models)
        first, like = trainers[0], weights["embedding_VD"]
        configs = [trainer.config for trainer in trainers]
        self._dtype = like.dtype
        self._precision, self._device = first.config.training.precision, first.runtime.device
        # All trainers have the same text.
        self._text_TB = first.streams_TB
        longest = max(trainer.longest_window for trainer in trainers)
        self._model = stacked_model(models, weights)
        draws = [draws_of(config, like.shape[1], longest) for config in configs]
        self._draws = StackedDraws(draws, [trainer.masks for trainer in trainers], like, longest)
        self._update = StackedUpdate(trainers, weights)
        self._penalties = penalties_of(configs, like)
        self._losses_G = torch.stack([trainer.epoch_loss for trainer in trainers])
        for trainer, loss in zip(trainers, self._losses_G, strict=True):
            trainer.epoch_loss = loss
        self._states = stacked_states([trainer.state for trainer in trainers])
        rows = (slice(index, index + 1) for index in range(len(trainers)))
        self._rows = [[(h[row], c[row]) for h, c in self._states] for row in rows]
        self._numbers = self._losses_G.new_zeros(len(trainers) * (2 + self._update.weights))
        self._replays = _Replays(like.device)

    def step(self) -> None:
        """Train every trial on one window."""
        windows = [trainer.next_window() for trainer in self.trainers]
        lengths = [window.steps for window in windows]
        self._draws.draw(lengths)
        self._adopt_states()
        starts = [window.start for window in windows]
        write_numbers(self._numbers, [*starts, *lengths, *self._update.rates(windows)])
        self._replays.run(max(lengths), partial(self._step, max(lengths)))
        for trainer, window in zip(self.trainers, windows, strict=True):
            if trainer.average is not None:
                trainer.average.update(trainer.model)
            trainer.advance(window)

    @staticmethod
    def leave(trainer: Trainer) -> None:
        """Copy a leaving trainer's tensors, so that the stack's memory can be freed."""
        for parameter in trainer.model.parameters():
            parameter.data = parameter.data.clone()
        tensors, state = trainer.snapshot()
        trainer.restore({name: tensor.detach().clone() for name, tensor in tensors.items()}, state)

    def _adopt_states(self) -> None:
        # At the start of the text, a trainer's state is new and must be copied.
        for trainer, rows in zip(self.trainers, self._rows, strict=True):
            if trainer.state is not rows:
                for row, state in zip(rows, trainer.state, strict=True):
                    row[0].copy_(state[0])
                    row[1].copy_(state[1])
                trainer.state = rows

    def _step(self, steps: int) -> None:
        trials = len(self.trainers)
        starts_G, lengths_G = self._numbers[: 2 * trials].view(2, trials)
        self._update.drop_gradients()
        with products_in(self._precision, self._device):
            losses_G, objective, states = self._forward(steps, starts_G.long(), lengths_G)
            objective.backward()
        self._update.step(self._numbers[2 * trials :].view(-1, trials))
        self._losses_G.add_(losses_G.detach().double() * lengths_G * self._text_TB.shape[1])
        for state, new_state in zip(self._states, states, strict=True):
            state.h.copy_(new_state.h)
            state.c.copy_(new_state.c)

    def _forward(
        self, steps: int, starts_G: Tensor, lengths_G: Tensor
    ) -> tuple[Tensor, Tensor, list[StackedState]]:
        # Trials are independent: the sum of the objectives gives each trial its own gradients.
        time_T = torch.arange(steps, device=starts_G.device)
        # Steps beyond a trial's window read on in the text, with weight 0.
        positions_GT = (starts_G.unsqueeze(1) + time_T).clamp_(max=len(self._text_TB) - 2)
        within_GT = (time_T < lengths_G.unsqueeze(1)).to(self._dtype)
        masks = self._draws.masks
        tokens_GTB = self._text_TB[positions_GT]
        contexts = self._model.contexts(tokens_GTB, self._states, lengths_G.long(), masks)
        rows = self._targets(positions_GT, within_GT, lengths_G)
        weight_GVD = self._model.output_weight()
        losses_G = self._model.losses(contexts.dropped_GTBC, weight_GVD, rows, masks)
        objective_G = losses_G
        if self._penalties is not None:
            objective_G = losses_G + self._penalties(contexts, within_GT)
        return losses_G, objective_G.sum(), contexts.state

    def _targets(
        self, positions_GT: Tensor, within_GT: Tensor, lengths_G: Tensor
    ) -> tuple[Tensor, Tensor]:
        targets_GTB = self._text_TB[positions_GT + 1]
        weight_G = (1 / (lengths_G * targets_GTB.shape[2])).to(within_GT.dtype)
        weights_GT = within_GT * weight_G.unsqueeze(1)
        return targets_GTB.flatten(1), weights_GT.unsqueeze(2).expand_as(targets_GTB).flatten(1)


class _Replays:
    # The first run of a key compiles and loads kernels, which a capture must not do.

    def __init__(self, device: torch.device) -> None:
        self._graphs = graphs_on(device)
        self._keys: set[int] = set()
        self._replays: dict[int, Callable[[], None]] = {}

    def run(self, key: int, work: Callable[[], None]) -> None:
        if self._graphs is None:
            work()
            return
        if key in self._keys and key not in self._replays and len(self._replays) < MOST_GRAPHS:
            self._replays[key] = self._graphs.captured(work)
        self._keys.add(key)
        if key in self._replays:
            self._replays[key]()
        else:
            self._graphs.run(work)
