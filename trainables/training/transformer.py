"""Training of Transformers."""

from __future__ import annotations

import math

import torch
from typing_extensions import override

from trainables.config import TransformerTrialConfig
from trainables.corpora import Corpus
from trainables.language_model import Transformer
from trainables.training.recipe import Recipe, Window
from trainables.training.start import start_at_frequencies


class TransformerRecipe(Recipe):
    """AdamW on windows of one length, with warm-up and cosine decay.

    A pass starts at a random one of the first `window` time steps. So windows differ between
    passes, and no token is always left out. `length`: time steps of the train streams.
    """

    def __init__(self, config: TransformerTrialConfig, length: int) -> None:
        self.config, self._length = config, length
        training = config.training
        self.longest_window = min(training.window, length - 1)
        step = self.longest_window * training.batch_size
        pass_windows = (length - 1) // self.longest_window
        epoch_steps = (
            pass_windows
            if training.epoch_tokens is None
            else math.ceil(training.epoch_tokens / step)
        )
        # Tokens of the whole run: slightly too many if an epoch is a pass, because some passes have
        # one window less.
        self._tokens = training.epochs * epoch_steps * step

    @override
    def model(self, corpus: Corpus, draws: torch.Generator) -> Transformer:
        model = Transformer(self.config.model, self.config.output_layer, len(corpus.vocabulary))
        model.initialise(draws)
        start_at_frequencies(model, corpus.train, hidden_deviation=1.0)
        return model

    @override
    def first_position(self, draws: torch.Generator) -> int:
        starts = min(self.longest_window, self._length - self.longest_window)
        return int(torch.randint(starts, (), generator=draws).item())

    @override
    def window(self, position: int, draws: torch.Generator) -> Window:
        return Window(position, position + self.longest_window, self.longest_window)

    @override
    def pass_is_over(self, position: int) -> bool:
        return position + self.longest_window > self._length - 1

    @override
    def rate(self, base_rate: float, window: Window, tokens: int) -> float:
        """Return the rate: linear from 0 over `warm_up_tokens`, then half a cosine.

        The last rate is `final_rate_share` of the peak.
        """
        training = self.config.training
        if tokens < training.warm_up_tokens:
            return base_rate * tokens / training.warm_up_tokens
        share = (tokens - training.warm_up_tokens) / max(1, self._tokens - training.warm_up_tokens)
        cosine = (1 + math.cos(math.pi * min(1.0, share))) / 2
        return base_rate * (training.final_rate_share + (1 - training.final_rate_share) * cosine)
