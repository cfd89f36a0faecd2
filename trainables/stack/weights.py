"""Parameters of the models of a stack: one tensor per name, with a row per model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import torch
from torch import Tensor

from trainables.language_model import LanguageModel
from trainables.stack.outputs import output_kind

OUTPUT = "output."


class Weights:
    """Stacked parameters of several models. Models of equal `output_kind` are adjacent.

    `outputs` has one entry per kind of output layer: its slice of models and its parameters.
    """

    def __init__(self, models: Sequence[LanguageModel]) -> None:
        tensors = [{name: p.detach() for name, p in m.named_parameters()} for m in models]
        kinds = [output_kind(model.output) for model in models]
        self._common = _stacked(tensors, output=False)
        self.outputs: list[tuple[slice, dict[str, Tensor]]] = []
        for _, group in groupby(range(len(kinds)), key=kinds.__getitem__):
            members = list(group)
            part = slice(members[0], members[-1] + 1)
            self.outputs.append((part, _stacked(tensors[part], output=True)))

    @classmethod
    def shared_by(cls, models: Sequence[LanguageModel]) -> Weights:
        """Return stacked weights; the models' parameters become views of their rows."""
        weights = cls(models)
        for name, part, tensor in weights.named():
            parameters = [model.get_parameter(name) for model in models[part]]
            for parameter, row in zip(parameters, tensor, strict=True):
                parameter.data = row
            tensor.requires_grad_(parameters[0].requires_grad)
        return weights

    def __getitem__(self, name: str) -> Tensor:
        """Return a stacked parameter by name. Those of output layers are in `outputs`."""
        return self._common[name]

    def __contains__(self, name: str) -> bool:
        return name in self._common

    def named(self) -> Iterator[tuple[str, slice, Tensor]]:
        """Yield each parameter's name, the slice of models that have it, and its tensor."""
        all_models = slice(0, self.outputs[-1][0].stop)
        yield from ((name, all_models, tensor) for name, tensor in self._common.items())
        for part, tensors in self.outputs:
            yield from ((OUTPUT + name, part, tensor) for name, tensor in tensors.items())

    def __iter__(self) -> Iterator[Tensor]:
        return (tensor for _, _, tensor in self.named())


def _stacked(tensors: Sequence[Mapping[str, Tensor]], *, output: bool) -> dict[str, Tensor]:
    names = [name for name in tensors[0] if name.startswith(OUTPUT) == output]
    return {
        name.removeprefix(OUTPUT): torch.stack([by_name[name] for by_name in tensors])
        for name in names
    }
