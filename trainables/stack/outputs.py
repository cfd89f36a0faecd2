"""Output layers of one kind in a stack. Further shape: K experts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from trainables.device import ALIGNMENT
from trainables.output_layers import (
    Inputs,
    Mixture,
    MixtureOfContexts,
    OutputLayer,
    PiecewiseLinear,
    PointwiseSoftmax,
    Softcap,
    cross_entropies,
)
from trainables.stack.masks import Masks

FUNCTION = "function."


def latent_mask(width: int) -> str:
    """Return the mask's name for a mixture with `width` latent numbers in total."""
    return f"latent.{width}"


def output_kind(layer: OutputLayer) -> Hashable:
    """Return the properties that layers must share to be computed as one."""
    assert isinstance(layer, PointwiseSoftmax | Mixture)
    function = layer.function
    mixtures = layer.mixtures if isinstance(layer, Mixture) else 1
    if isinstance(function, PiecewiseLinear):
        weight_K = function.weight_K
        return type(layer), mixtures, len(weight_K), function.limit, weight_K.requires_grad
    # The identity is a smooth bend, too.
    return type(layer), mixtures, isinstance(function, Softcap)


class StackedOutput:
    """Output layers of equal `output_kind`. They belong to the models in the slice `part`."""

    def __init__(
        self, layers: Sequence[OutputLayer], part: slice, parameters: Mapping[str, Tensor]
    ) -> None:
        self._part, self._parameters, self._kind = part, parameters, type(layers[0])
        self._product_dtype = layers[0].product_dtype
        self._functions = [
            layer.function for layer in layers if isinstance(layer, PointwiseSoftmax | Mixture)
        ]

    def losses(
        self,
        hidden_GTBC: Tensor,
        weight_GVD: Tensor,
        rows: tuple[Tensor, Tensor],
        masks: Masks | None,
    ) -> Tensor:
        """Return the mean cross-entropy of each model in `part`; arguments cover all models.

        `rows` is as in `StackedModel.losses`. Outside training, pass no `masks`.
        """
        parameters, part = self._parameters, self._part
        if part != slice(0, len(hidden_GTBC)):  # the gradient of a slice is a copy
            hidden_GTBC, weight_GVD = hidden_GTBC[part], weight_GVD[part]
        dtype = hidden_GTBC.dtype
        if masks is not None and self._product_dtype is not None:
            dtype = self._product_dtype
        hidden_GNC = hidden_GTBC.flatten(1, 2)
        if self._kind is PointwiseSoftmax:
            experts_GNKD = hidden_GNC.unsqueeze(2)
            prior_GNK = hidden_GNC.new_zeros(*hidden_GNC.shape[:2], 1)
        else:
            logits_GNK = torch.bmm(hidden_GNC.to(dtype), parameters["prior_KC"].to(dtype).mT)
            prior_GNK = torch.log_softmax(logits_GNK.to(hidden_GNC.dtype), dim=2)
            width = parameters["latent_bias_KD"][0].numel()
            mask_GBX = (masks or {}).get(latent_mask(width))
            part_mask_GBX = None if mask_GBX is None else mask_GBX[part]
            experts_GNKD = _latent(hidden_GTBC, parameters, part_mask_GBX, dtype)
        if self._kind is MixtureOfContexts:
            experts_GNKD = torch.einsum(
                "gnk,gnkd->gnd", prior_GNK.exp().to(dtype), experts_GNKD.to(dtype)
            ).unsqueeze(2)
            prior_GNK = torch.zeros_like(prior_GNK[..., :1])
        function_parameters = [
            tensor for name, tensor in parameters.items() if name.startswith(FUNCTION)
        ]
        inputs = Inputs(experts_GNKD.to(dtype), prior_GNK, weight_GVD, parameters["bias_V"])
        part_rows = rows[0][part], rows[1][part]
        return cross_entropies(inputs, part_rows, self._functions, function_parameters)


def _latent(
    hidden_GTBC: Tensor,
    parameters: Mapping[str, Tensor],
    mask_GBX: Tensor | None,
    dtype: torch.dtype,
) -> Tensor:
    latent, bias = parameters["latent_KDC"], parameters["latent_bias_KD"]
    models, experts, width, context_width = latent.shape
    steps = hidden_GTBC.shape[1]
    hidden_GNC, weight_GXC = hidden_GTBC.flatten(1, 2).to(dtype), latent.flatten(1, 2).to(dtype)
    if zeros := -context_width % ALIGNMENT:  # autograd does not track `aligned`
        hidden_GNC, weight_GXC = pad(hidden_GNC, (0, zeros)), pad(weight_GXC, (0, zeros))
    flat = torch.baddbmm(bias.flatten(1).unsqueeze(1).to(dtype), hidden_GNC, weight_GXC.mT).tanh()
    if mask_GBX is not None:
        flat = (flat.unflatten(1, (steps, -1)) * mask_GBX.unsqueeze(1)).flatten(1, 2)
    return flat.view(models, -1, experts, width)
