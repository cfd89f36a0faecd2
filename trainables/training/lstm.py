"""Training of AWD-LSTMs: SGD or Adam, windows of random length, activation regularisers, averaging.

Sources: Merity et al. 2018; AAAI 2021.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from typing_extensions import override

from trainables.config import TrialConfig
from trainables.corpora import Corpus
from trainables.language_model import AwdLstm, Contexts
from trainables.training.averaging import should_switch
from trainables.training.recipe import Recipe, Window
from trainables.training.start import scale_start
from trainables.training.streams import MAX_EXTRA, draw_window


class LstmRecipe(Recipe):
    """Training of AWD-LSTMs. `length`: time steps of the train streams."""

    def __init__(self, config: TrialConfig, length: int) -> None:
        self.config, self._length = config, length
        self.longest_window = min(config.training.bptt + MAX_EXTRA, length - 1)

    @override
    def model(self, corpus: Corpus, draws: torch.Generator) -> AwdLstm:
        config = self.config
        model = AwdLstm(config.model, config.output_layer, len(corpus.vocabulary))
        model.initialise(draws)
        if config.model.start == "scaled":
            scale_start(model, corpus.train)
        return model

    @override
    def first_position(self, draws: torch.Generator) -> int:
        return 0

    @override
    def window(self, position: int, draws: torch.Generator) -> Window:
        length = draw_window(self.config.training.bptt, draws)
        return Window(position, min(position + length, self._length - 1), length)

    @override
    def pass_is_over(self, position: int) -> bool:
        # A window needs two time steps: one to read, one to predict.
        return position >= self._length - 2

    @override
    def rate(self, base_rate: float, window: Window, tokens: int) -> float:
        """Return `base_rate`, scaled by the warm-up and the window's drawn length."""
        training = self.config.training
        return (
            min(1.0, tokens / max(1, training.warm_up_tokens))
            * base_rate
            * window.drawn_length
            / training.bptt
        )

    @override
    def objective(self, loss: Tensor, contexts: Contexts) -> Tensor:
        undropped_TBC = contexts.undropped_TBC
        # At least float32: a bf16 network gives bf16.
        dtype = torch.promote_types(undropped_TBC.dtype, torch.float32)
        activation = contexts.dropped_TBC.to(dtype).square().mean()
        change = (undropped_TBC[1:].to(dtype) - undropped_TBC[:-1]).square().mean()
        training = self.config.training
        penalties = training.activation_regularisation * activation
        return loss + penalties + training.temporal_activation_regularisation * change

    @override
    def starts_averaging(self, losses: Sequence[float]) -> bool:
        return should_switch(self.config.training.averaging, losses)
