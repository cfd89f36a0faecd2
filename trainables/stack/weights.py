"""The parameters of the models of a stack: one tensor a name with a leading axis, and the models'
are its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import torch
from torch import Tensor

from trainables.language_model import LanguageModel
from trainables.stack.outputs import output_kind

OUTPUT, HEAD = "output.", "head."


class Weights:
    """Of models that stand in the order of the kinds of their output layers."""

    def __init__(
        self, models: Sequence[LanguageModel], tensors: Sequence[Mapping[str, Tensor]]
    ) -> None:
        """`tensors`: of every model, by the names of its parameters; they are copied."""
        kinds = [output_kind(model.output) for model in models]
        self.parts: list[slice] = []
        """Where models with output layers of one kind stand."""
        for _, group in groupby(range(len(kinds)), key=kinds.__getitem__):
            members = list(group)
            self.parts.append(slice(members[0], members[-1] + 1))
        self._common = _stacked(tensors, output=False)
        self._of_outputs = [_stacked(tensors[part], output=True) for part in self.parts]

    @classmethod
    def shared_by(cls, models: Sequence[LanguageModel]) -> Weights:
        """Those of the models, whose parameters become rows of them; to be trained where theirs
        are."""
        named = [dict(model.named_parameters()) for model in models]
        weights = cls(
            models, [{name: p.detach() for name, p in parameters.items()} for parameters in named]
        )
        for name, part, tensor in weights.named():
            for parameters, row in zip(named[part], tensor, strict=True):
                parameters[name].data = row
            tensor.requires_grad_(named[part.start][name].requires_grad)
        return weights

    def __getitem__(self, name: str) -> Tensor:
        """Of all models; not of their output layers."""
        return self._common[name]

    def of_head(self) -> dict[str, Tensor]:
        """Those of output weights that are not the embedding's, by name."""
        return {
            name.removeprefix(HEAD): tensor
            for name, tensor in self._common.items()
            if name.startswith(HEAD)
        }

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


def _stacked(tensors: Sequence[Mapping[str, Tensor]], *, output: bool) -> dict[str, Tensor]:
    """Those of the output layers, or the others."""
    names = [name for name in tensors[0] if name.startswith(OUTPUT) == output]
    return {
        name.removeprefix(OUTPUT): torch.stack([named[name] for named in tensors]) for name in names
    }
