"""Several trials of the same shapes, trained as one model with a leading axis.

Every trial keeps its `Trainer`: its random streams, its place in the text, its progress and its checkpoints are those
of the trial alone. What the stack holds is the numbers: parameters, moments and averages of all trials in one tensor a
name, of which the trainers' are views. A trial can leave after any step, and another one join.

Shapes: G trials, T time steps of the longest window, B batch, V vocabulary, D width of embeddings, C of contexts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trainables.device import products_in, tensor_like
from trainables.stack.masks import Masks, draw_masks
from trainables.stack.model import StackedModel, stacked_states
from trainables.stack.outputs import output_kind
from trainables.stack.update import StackedUpdate
from trainables.stack.weights import Weights
from trainables.training import Trainer, Window


class Stack:
    """Trainers that make their steps together. Each one's epochs end when they would alone: ask it after every step."""

    def __init__(self, trainers: Sequence[Trainer]) -> None:
        """The trainers' configs have equal `stack_key`s."""
        # Trials with output layers of one kind stand side by side, so that their part of a tensor is a slice.
        kinds = list(dict.fromkeys(output_kind(trainer.model.output) for trainer in trainers))
        self.trainers = sorted(trainers, key=lambda trainer: kinds.index(output_kind(trainer.model.output)))
        models = [trainer.model for trainer in self.trainers]
        self.weights = Weights.shared_by(models)
        self._model = StackedModel(models, self.weights)
        self._update = StackedUpdate(self.trainers, self.weights)
        self._losses = torch.stack([trainer.epoch_loss for trainer in self.trainers])
        for trainer, loss in zip(self.trainers, self._losses, strict=True):
            trainer.epoch_loss = loss

    def step(self) -> None:
        """One window of every trial: forward, backward, one update."""
        windows = [trainer.next_window() for trainer in self.trainers]
        first = self.trainers[0]
        with products_in(first.config.training.precision, first.runtime.device):
            losses_G, objective = self._forward(windows)
            for weight in self.weights:
                weight.grad = None
            objective.backward()
        self._update.step(windows)
        batch = first.config.training.batch_size
        counts_G = tensor_like([window.steps * batch for window in windows], self._losses)
        self._losses += losses_G.detach().double() * counts_G
        for trainer, window in zip(self.trainers, windows, strict=True):
            trainer.advance(window)

    @staticmethod
    def leave(trainer: Trainer) -> None:
        """Give a trainer that leaves numbers of its own, so that it does not hold those of its mates."""
        for parameter in trainer.model.parameters():
            parameter.data = parameter.data.clone()
        trainer.state = [(h.clone(), c.clone()) for h, c in trainer.state]
        trainer.epoch_loss = trainer.epoch_loss.clone()
        for moments in trainer.optimizer.state.values():
            for key, moment in moments.items():
                moments[key] = moment.clone()

    def _forward(self, windows: Sequence[Window]) -> tuple[Tensor, Tensor]:
        """Every trial's loss, and the sum of what they minimise: no trial's gradient depends on another one's."""
        tokens_GTB, rows, valid_GT = self._texts(windows)
        masks = self._masks(windows)
        before = stacked_states([trainer.state for trainer in self.trainers])
        lengths_G = tensor_like([window.steps for window in windows], tokens_GTB)
        contexts = self._model.contexts(tokens_GTB, before, lengths_G, masks)
        for index, trainer in enumerate(self.trainers):
            trainer.state = [(state.h[index : index + 1], state.c[index : index + 1]) for state in contexts.states]
        losses_G = self._model.losses(contexts.dropped, rows, masks)
        batch, width = contexts.h3.shape[2:]
        counts_G = valid_GT.sum(1) * batch * width
        activation_G = (contexts.dropped.float().square().sum((2, 3)) * valid_GT).sum(1) / counts_G
        changes_GT = (contexts.h3[:, 1:].float() - contexts.h3[:, :-1]).square().sum((2, 3)) * valid_GT[:, 1:]
        change_G = changes_GT.sum(1) / (counts_G - batch * width)
        trainings = [trainer.config.training for trainer in self.trainers]
        alpha_G = tensor_like([training.activation_regularisation for training in trainings], losses_G)
        beta_G = tensor_like([training.temporal_activation_regularisation for training in trainings], losses_G)
        return losses_G, (losses_G + alpha_G * activation_G + beta_G * change_G).sum()

    def _texts(self, windows: Sequence[Window]) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor]:
        """Tokens G x T x B, the targets with the weight of each, G x T B, and which steps are of the windows, G x T."""
        texts = [trainer.tokens(window) for trainer, window in zip(self.trainers, windows, strict=True)]
        tokens_GTB = pad_sequence([inputs_TB for inputs_TB, _ in texts], batch_first=True)
        targets_GN = pad_sequence([targets_N for _, targets_N in texts], batch_first=True)
        batch = tokens_GTB.shape[2]
        like = self.weights["embedding_VD"]
        weights = [like.new_full((len(targets_N),), 1 / len(targets_N)) for _, targets_N in texts]
        weights_GN = pad_sequence(weights, batch_first=True)
        return tokens_GTB, (targets_GN, weights_GN), (weights_GN[:, ::batch] > 0).to(like.dtype)

    def _masks(self, windows: Sequence[Window]) -> Masks:
        return draw_masks(
            [trainer.config for trainer in self.trainers],
            [trainer.masks for trainer in self.trainers],
            [window.steps for window in windows],
            self.weights["embedding_VD"],
        )
