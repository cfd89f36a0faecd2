"""The dropout masks and the noise of a stack: every model's from its own generator, in the order of the model alone.

Shapes: G models, T time steps of the longest window, B batch, V vocabulary, D width of the embeddings, H of a layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from trainables.config import MixtureConfig, TrialConfig


@dataclass(frozen=True)
class Masks:
    """What multiplies, or is added to, the values of all models; None where no model has any of it."""

    words_GV: Tensor | None
    noise_GTBD: Tensor | None
    embedded_GBD: Tensor | None
    weights: list[Tensor | None]
    """Of every LSTM layer's hidden-to-hidden weights, G x 4 H x H."""
    hidden: list[Tensor | None]
    """Of every LSTM layer's outputs, G x B x H."""
    latent: list[Tensor | None]
    """By model: of the context vectors of a mixture, B x K D."""


class _Draws:
    """The draws of one model."""

    def __init__(self, config: TrialConfig, generator: torch.Generator, like: Tensor) -> None:
        self._model, self._layer, self._batch = config.model, config.output_layer, config.training.batch_size
        self._generator, self._like = generator, like

    def words(self, vocabulary: int) -> Tensor | None:
        return self._kept((vocabulary,), self._model.dropout_embedding_matrix)

    def noise(self, steps: int) -> Tensor | None:
        deviation = self._model.embedding_noise
        if not deviation:
            return None
        noise = self._like.new_empty(steps, self._batch, self._model.embedding_width)
        return noise.normal_(0.0, deviation, generator=self._generator)

    def embedded(self) -> Tensor | None:
        return self._kept((self._batch, self._model.embedding_width), self._model.dropout_embedding)

    def weights(self, width: int) -> Tensor | None:
        return self._kept((4 * width, width), self._model.dropconnect)

    def hidden(self, width: int, *, last: bool) -> Tensor | None:
        return self._kept((self._batch, width), self._model.dropout_output if last else self._model.dropout_hidden)

    def latent(self) -> Tensor | None:
        if not isinstance(self._layer, MixtureConfig):
            return None
        width = self._layer.mixtures * self._model.embedding_width
        return self._kept((self._batch, width), self._layer.latent_dropout)

    def _kept(self, shape: tuple[int, ...], rate: float) -> Tensor | None:
        """A mask as `trainables.draws` draws it; None where nothing is dropped, and nothing drawn."""
        if not rate:
            return None
        return self._like.new_empty(shape).bernoulli_(1 - rate, generator=self._generator) / (1 - rate)


def draw_masks(
    configs: Sequence[TrialConfig], generators: Sequence[torch.Generator], lengths: Sequence[int], embedding_GVD: Tensor
) -> Masks:
    """Draw for one window of so many time steps a model; dtype and device are those of the embedding."""
    draws = [_Draws(*model, embedding_GVD) for model in zip(configs, generators, strict=True)]
    widths = [out for _, out in configs[0].model.layer_widths]
    words_GV = _stacked([draw.words(embedding_GVD.shape[1]) for draw in draws], 1.0)
    noise = [draw.noise(steps) for draw, steps in zip(draws, lengths, strict=True)]
    longest = max(lengths)
    noise_GTBD = _stacked([n if n is None else pad(n, (0, 0, 0, 0, 0, longest - len(n))) for n in noise], 0.0)
    embedded_GBD = _stacked([draw.embedded() for draw in draws], 1.0)
    weights, hidden = [], []
    for number, width in enumerate(widths, 1):
        weights.append(_stacked([draw.weights(width) for draw in draws], 1.0))
        hidden.append(_stacked([draw.hidden(width, last=number == len(widths)) for draw in draws], 1.0))
    return Masks(words_GV, noise_GTBD, embedded_GBD, weights, hidden, [draw.latent() for draw in draws])


def _stacked(masks: Sequence[Tensor | None], neutral: float) -> Tensor | None:
    """One tensor; a model without a mask gets a neutral one."""
    drawn = next((mask for mask in masks if mask is not None), None)
    if drawn is None:
        return None
    return torch.stack([torch.full_like(drawn, neutral) if mask is None else mask for mask in masks])
