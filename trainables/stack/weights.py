"""The parameters of the models of a stack: one tensor a name with a leading axis, and the models' are its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor

from trainables.language_model import AwdLstm
from trainables.stack.outputs import output_kind

OUTPUT = "output."


class Weights:
    """Of models that stand in the order of the kinds of their output layers."""

    def __init__(self, models: Sequence[AwdLstm]) -> None:
        self.parts: list[slice] = []
        """Where models with output layers of one kind stand."""
        self._common: dict[str, Tensor] = {}
        self._of_outputs: list[dict[str, Tensor]] = []
        start = 0
        for _, group in groupby(models, key=lambda model: output_kind(model.output)):
            members = list(group)
            self.parts.append(slice(start, start + len(members)))
            self._of_outputs.append(_stacked(members, output=True))
            start += len(members)
        self._common = _stacked(models, output=False)

    def __getitem__(self, name: str) -> Tensor:
        """Of all models; not of their output layers."""
        return self._common[name]

    def of_output(self, part: slice) -> dict[str, Tensor]:
        """Those of the output layers of a part, by name."""
        return self._of_outputs[self.parts.index(part)]

    def named(self) -> Iterator[tuple[str, slice, Tensor]]:
        """Name in the model, whose they are, and the tensor."""
        whole = slice(0, self.parts[-1].stop)
        yield from ((name, whole, tensor) for name, tensor in self._common.items())
        for part, tensors in zip(self.parts, self._of_outputs, strict=True):
            yield from ((OUTPUT + name, part, tensor) for name, tensor in tensors.items())

    def __iter__(self) -> Iterator[Tensor]:
        return (tensor for _, _, tensor in self.named())


def _stacked(models: Sequence[AwdLstm], *, output: bool) -> dict[str, Tensor]:
    """The parameters of these models, of their output layers or the others, of which theirs become views."""
    stacked = {}
    named = [dict(model.named_parameters()) for model in models]
    for name, first in named[0].items():
        if name.startswith(OUTPUT) == output:
            tensor = torch.stack([parameters[name].detach() for parameters in named])
            for parameters, row in zip(named, tensor, strict=True):
                parameters[name].data = row
            stacked[name.removeprefix(OUTPUT)] = tensor.requires_grad_(first.requires_grad)
    return stacked
