"""Gradient bottleneck: how much of the loss gradient a step on the context vector can follow.

docs/measurements.md defines the metrics and names the source. All computations are in float64.

The angle at a context is at least arccos(sqrt(1 - lost share)). Only a plain softmax has
`gradient_norm_lost`, computed from uncentred output weights.
"""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import Tensor

from trainables.measurements.log_p_jacobian import log_p_jacobian
from trainables.output_layers import Identity, OutputLayer, PointwiseSoftmax
from trainables.pulse import PULSE
from trainables.trial_folder import Metric

CONTEXTS = 256
"""Number of evenly spaced test contexts."""


def gradient_bottleneck_metrics(
    output: OutputLayer, weight_VD: Tensor, contexts_nC: Tensor, targets_n: Tensor
) -> dict[str, Metric]:
    """Return the metrics of `gradient_bottleneck@1`.

    Omits contexts at which the next word has probability 1.
    """
    layer = copy.deepcopy(output).double().eval().requires_grad_(False)
    weight_VD, contexts_nC = weight_VD.detach().double(), contexts_nC.detach().double()
    shares, angles, gradients = list[float](), list[float](), list[Tensor]()
    for context_C, target in zip(contexts_nC, targets_n.tolist(), strict=True):
        PULSE.touch()
        # g = P - onehot(target)
        gradient_V = layer.log_probabilities(context_C.unsqueeze(0), weight_VD).squeeze(0).exp()
        gradient_V[target] -= 1.0
        if not gradient_V.any():
            continue
        jacobian_VC = log_p_jacobian(layer, weight_VD, context_C)
        columns, gradient = triangle(jacobian_VC - jacobian_VC.mean(0), gradient_V)
        residual = residual_outside(columns, gradient)
        shares.append(float(residual.square().sum() / gradient.square().sum()))
        angles.append(_angle(gradient, columns @ (columns.T @ gradient)))
        gradients.append(gradient_V)
    metrics: dict[str, Metric] = {"gradient_contexts": len(shares)}
    if shares:
        metrics |= {
            "gradient_lost_share": float(np.mean(shares)),
            "gradient_angle_degrees": float(np.mean(angles)),
        }
    if shares and type(layer) is PointwiseSoftmax and isinstance(layer.function, Identity):
        columns, gradient_columns = triangle(weight_VD, torch.stack(gradients, 1))
        metrics["gradient_norm_lost"] = float(
            residual_outside(columns, gradient_columns).norm() / gradient_columns.norm()
        )
    return metrics


def triangle(columns_VC: Tensor, vectors_V: Tensor) -> tuple[Tensor, Tensor]:
    """Return the coordinates of two sets of vectors in an orthonormal basis of their joint span.

    `vectors_V` is one vector, or n columns. Results have at most C + n rows and are on the CPU,
    where small SVDs are faster.
    """
    count = columns_VC.shape[1]
    factor = torch.linalg.qr(
        torch.cat([columns_VC, vectors_V.reshape(len(columns_VC), -1)], 1), mode="r"
    ).R.cpu()
    return factor[:, :count], factor[:, count:].reshape(-1, *vectors_V.shape[1:])


def residual_outside(columns: Tensor, vectors: Tensor) -> Tensor:
    """Return the part of `vectors` outside the span of `columns`.

    The columns may be linearly dependent.
    """
    basis, sigma, _ = torch.linalg.svd(columns, full_matrices=False)
    basis = basis[:, sigma > max(columns.shape) * torch.finfo(sigma.dtype).eps * sigma[:1]]
    return vectors - basis @ (basis.T @ vectors)


def _angle(first: Tensor, second: Tensor) -> float:
    lengths = float(first.norm()), float(second.norm())
    if not lengths[1]:
        return 90.0
    first, second = first / lengths[0], second / lengths[1]
    # The half-angle formula keeps small angles exact.
    return math.degrees(
        2 * math.atan2(float((first - second).norm()), float((first + second).norm()))
    )
