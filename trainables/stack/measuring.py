"""Measurements of several trained models of a stack: the text is read by all of them at once.

Shapes: G models, N contexts, C width of the context vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from trainables.config import PERPLEXITY, SPECTRUM
from trainables.device import products_in
from trainables.language_model import LanguageModel
from trainables.measurements import measure, perplexity_of, rank_tokens, ranks_of, spectrum_at
from trainables.pulse import PULSE
from trainables.stack.validation import stacked_context_windows, stacked_losses
from trainables.training import Trainer
from trainables.trial_folder import Measured

CONTEXT_BYTES = 4 * 2**30
"""Of context vectors that are kept at a time."""

Taken = Measured | Exception


def measure_stack(
    names: Sequence[str], trainers: Sequence[Trainer]
) -> list[dict[str, Measured] | Exception]:
    """What `measure` gives for the model of every trainer, with the kept weights in it, or what it
    raises. What comes of the pass of all is raised.

    The trainers have equal `stack_key`s and stand in the order of a stack. A measurement that has
    no way for a stack is taken of one model after another."""
    results: dict[Trainer, dict[str, Measured] | Exception] = {trainer: {} for trainer in trainers}
    for name in names:
        going = [trainer for trainer, result in results.items() if isinstance(result, dict)]
        if not going:
            break
        PULSE.enter(f"in the measurement {name}")
        with products_in("float32", going[0].runtime.device):
            taken = (
                TOGETHER[name](going)
                if name in TOGETHER
                else [_alone(name, trainer) for trainer in going]
            )
        for trainer, measured in zip(going, taken, strict=True):
            result = results[trainer]
            if isinstance(result, dict) and isinstance(measured, Measured):
                result[name] = measured
            elif isinstance(measured, Exception):
                results[trainer] = measured
    return list(results.values())


def _alone(name: str, trainer: Trainer) -> Taken:
    def taken(trainer: Trainer) -> Measured:
        model, config, epochs = trainer.model, trainer.config, trainer.progress.epochs
        return measure([name], model, trainer.corpus, config, trainer.runtime, epochs=epochs)[name]

    return _attempt(taken, trainer)


def _attempt(take: Callable[..., Measured], *given: Any) -> Taken:
    """What the function gives, or what it raises."""
    try:
        return take(*given)
    except Exception as error:
        return error


def _perplexities(trainers: Sequence[Trainer]) -> list[Taken]:
    first = trainers[0]
    evaluation = first.config.evaluation
    losses = stacked_losses(
        _models(trainers),
        first.corpus.test[: evaluation.test_tokens],
        batch=evaluation.test_batch_size,
        window=evaluation.window,
        split="test",
    )
    return [_attempt(perplexity_of, loss) for loss in losses]


def _spectra(trainers: Sequence[Trainer]) -> list[Taken]:
    def taken(model: LanguageModel, contexts_NC: Tensor) -> Measured:
        return ranks_of(spectrum_at(model, contexts_NC))

    return [
        _attempt(taken, model, contexts_NC)
        for models, contexts_GNC in _contexts(trainers)
        for model, contexts_NC in zip(models, contexts_GNC, strict=True)
    ]


def _contexts(trainers: Sequence[Trainer]) -> Iterator[tuple[Sequence[LanguageModel], Tensor]]:
    """As many models at a time as their context vectors allow, with these, G x N x C."""
    config, models = trainers[0].config, _models(trainers)
    tokens, window = rank_tokens(trainers[0].corpus, config), config.evaluation.window
    most = max(1, CONTEXT_BYTES // (4 * len(tokens) * config.model.context_width))
    for start in range(0, len(models), most):
        part = models[start : start + most]
        yield part, torch.cat(list(stacked_context_windows(part, tokens, window=window)), 1)


def _models(trainers: Sequence[Trainer]) -> list[LanguageModel]:
    return [trainer.model.eval() for trainer in trainers]


TOGETHER: dict[str, Callable[[Sequence[Trainer]], list[Taken]]] = {
    PERPLEXITY: _perplexities,
    SPECTRUM: _spectra,
}
"""The measurements that a stack takes as one."""
