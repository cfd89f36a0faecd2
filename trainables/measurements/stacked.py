"""Measurements of several trained models of a stack: the text is read by all of them at once.

Shapes: G models, N contexts, C width of the context vector.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

import torch
from torch import Tensor

from trainables.config import PERPLEXITY, SPECTRUM, EvaluationConfig
from trainables.device import products_in
from trainables.language_model import LanguageModel
from trainables.measurements.registry import (
    attempt,
    measure,
    perplexity_of,
    rank_tokens,
    ranks_of,
    spectra_at,
)
from trainables.pulse import PULSE
from trainables.stack import stacked_context_windows, stacked_losses
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

    The trainers have equal `stack_key`s and stand in the order of a stack; how much text they are
    measured on may differ. A measurement that has no way for a stack is taken of one model after
    another."""
    groups: dict[Hashable, list[int]] = {}
    for index, trainer in enumerate(trainers):
        groups.setdefault(_text(trainer.config.evaluation), []).append(index)
    results: dict[int, dict[str, Measured] | Exception] = {}
    for group in groups.values():
        measured = _measure_group(names, [trainers[index] for index in group])
        results |= dict(zip(group, measured, strict=True))
    return [results[index] for index in range(len(trainers))]


def _text(evaluation: EvaluationConfig) -> Hashable:
    return evaluation.test_tokens, evaluation.test_batch_size, evaluation.rank_contexts


def _measure_group(
    names: Sequence[str], trainers: Sequence[Trainer]
) -> list[dict[str, Measured] | Exception]:
    results: list[dict[str, Measured] | Exception] = [{} for _ in trainers]
    for name in names:
        sound = [index for index, result in enumerate(results) if isinstance(result, dict)]
        if not sound:
            break
        going = [trainers[index] for index in sound]
        PULSE.enter(f"in the measurement {name}")
        with products_in("float32", going[0].runtime.device):
            taken = (
                TOGETHER[name](going)
                if name in TOGETHER
                else [_alone(name, trainer) for trainer in going]
            )
        for index, measured in zip(sound, taken, strict=True):
            result = results[index]
            if isinstance(measured, Exception):
                results[index] = measured
            elif isinstance(result, dict):
                result[name] = measured
    return results


def _alone(name: str, trainer: Trainer) -> Taken:
    try:
        epochs = trainer.progress.epochs
        return measure(
            [name], trainer.model, trainer.corpus, trainer.config, trainer.runtime, epochs=epochs
        )[name]
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
    return [attempt(perplexity_of, loss) for loss in losses]


def _spectra(trainers: Sequence[Trainer]) -> list[Taken]:
    spectra = [
        spectrum
        for models, contexts_GNC in _contexts(trainers)
        for spectrum in spectra_at(models, contexts_GNC.unbind())
    ]
    return [
        spectrum if isinstance(spectrum, Exception) else attempt(ranks_of, spectrum)
        for spectrum in spectra
    ]


def _contexts(trainers: Sequence[Trainer]) -> Iterator[tuple[Sequence[LanguageModel], Tensor]]:
    """As many models at a time as their context vectors allow, with these, G x N x C."""
    config, models = trainers[0].config, _models(trainers)
    tokens = rank_tokens(trainers[0].corpus, config)
    most = max(1, CONTEXT_BYTES // (4 * len(tokens) * config.model.context_width))
    for start in range(0, len(models), most):
        part = models[start : start + most]
        yield (
            part,
            torch.cat(
                list(stacked_context_windows(part, tokens, window=config.evaluation.window)), 1
            ),
        )


def _models(trainers: Sequence[Trainer]) -> list[LanguageModel]:
    return [trainer.model.eval() for trainer in trainers]


TOGETHER: dict[str, Callable[[Sequence[Trainer]], list[Taken]]] = {
    PERPLEXITY: _perplexities,
    SPECTRUM: _spectra,
}
"""The measurements that a stack takes as one."""
