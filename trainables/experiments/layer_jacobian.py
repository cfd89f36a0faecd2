"""Singular values of the Jacobian of untrained layers at random inputs (Orhan 2018).

Shapes: N inputs, R singular values; the others as in `mixture_of_experts`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import jacrev, vmap

from trainables.config import LAYER_JACOBIAN, LayerJacobianConfig
from trainables.device import singular_values
from trainables.draws import stream
from trainables.experiments.mixture_of_experts import MixtureOfExperts, NonLocal, make_layer
from trainables.measurements import effective_rank, entropy_rank, stable_rank
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.trial_folder import Measured, Metric

BATCH = 100
THRESHOLDS = ("1e-1", "1e-2", "1e-3", "1e-6")
"""Values of EPSILON in the metrics `vanishing_EPSILON`."""


def measure(config: LayerJacobianConfig, runtime: Runtime) -> dict[str, Measured]:
    """Measure the Jacobians of `depth` random layers in a chain at random inputs, in float64.

    The spectrum is the mean over inputs. Two chains share no random draws, even at one seed.
    """
    description, width = config.layer.model_dump_json(), config.width
    parts = (zlib.crc32(text.encode()) for text in (description, f"beside {description}"))
    generator, gaussian_generator = (stream(config.seed, part + config.depth - 1) for part in parts)
    layers = []
    for _ in range(config.depth):
        layers.append(make_layer(config.layer, width, width, gate_bias=False).double())
        layers[-1].initialise(generator)
    draw = torch.randn if config.input_distribution == "normal" else torch.rand
    inputs_NI = draw(config.inputs, width, generator=generator, dtype=torch.float64)
    for layer in layers:
        layer.to(runtime.device)
    spectra, gaussian_spectra, zero_rows = [], [], []
    for batch_NI in inputs_NI.split(BATCH):
        PULSE.touch()
        jacobian_NOI, gaussian_NOI, zeros_N = chain(
            layers, batch_NI.to(runtime.device), gaussian_generator
        )
        spectra.append(singular_values(jacobian_NOI).cpu())
        gaussian_spectra.append(singular_values(gaussian_NOI).cpu())
        zero_rows.append(zeros_N.cpu())
    sigma_NR, zero_rows_N = torch.cat(spectra).numpy(), torch.cat(zero_rows).numpy()
    metrics = spectrum_metrics(sigma_NR, zero_rows_N, torch.cat(gaussian_spectra).numpy())
    return {LAYER_JACOBIAN: Measured(metrics, np.sort(sigma_NR.mean(axis=0))[::-1].copy())}


@torch.no_grad()
def chain(
    layers: Sequence[MixtureOfExperts], inputs_NI: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the Jacobians of layers in a chain, N x O x I, Gaussian ones, and rows of zeros.

    The Gaussian ones are products of `gaussian_like` for each layer. The rows of zeros, N, are
    those of the layer that has the most.
    """
    product_NOI = gaussian_NOI = torch.eye(inputs_NI.shape[1]).to(inputs_NI)
    zero_rows_N = inputs_NI.new_zeros(len(inputs_NI), dtype=torch.int64)
    for layer in layers:
        jacobian_NOI = jacobian(layer, inputs_NI)
        gaussian_NOI = gaussian_like(jacobian_NOI, generator) @ gaussian_NOI
        product_NOI = jacobian_NOI @ product_NOI
        zero_rows_N = zero_rows_N.maximum((jacobian_NOI == 0).all(dim=2).sum(dim=1))
        inputs_NI = layer(inputs_NI)
    return product_NOI, gaussian_NOI, zero_rows_N


@torch.no_grad()
def jacobian(layer: MixtureOfExperts, inputs_NI: Tensor) -> Tensor:
    """Return dy/dx at each input, N x O x I; relu has slope 0 at 0."""
    if isinstance(layer, NonLocal):
        return vmap(jacrev(lambda input_I: layer(input_I[None])[0]))(inputs_NI)
    # With y = sum_k g_k h_k and h_k = relu(W_k x), row o is
    #     sum_k g_k 1[h_ko > 0] W_ko + sum_k h_ko dg_k/dx.
    # For softmax, dg_k/dx = g_k (v_k - sum_l g_l v_l), so the second sum is
    #     sum_k g_k (h_ko - y_o) v_k.
    # The columns of W_k, which may be a convolution, are its values at unit vectors.
    weights_IKO = layer.expert_scores(torch.eye(inputs_NI.shape[1]).to(inputs_NI))
    scores_NKO = layer.expert_scores(inputs_NI)
    gates_NKU = layer.gates(inputs_NI)
    slopes_NKO = gates_NKU * (scores_NKO > 0)
    jacobian_NOI = torch.einsum("nko,iko->noi", slopes_NKO, weights_IKO)
    if layer.gate_weights_KUI is None:
        return jacobian_NOI
    experts_NKO = scores_NKO.relu()
    outputs_N1O = (gates_NKU * experts_NKO).sum(1, keepdim=True)
    pulls_NKO = gates_NKU * (experts_NKO - outputs_N1O)
    if layer.gate_weights_KUI.shape[1] == 1:
        return jacobian_NOI + torch.einsum("nko,ki->noi", pulls_NKO, layer.gate_weights_KUI[:, 0])
    copies = pulls_NKO.shape[2] // layer.gate_weights_KUI.shape[1]
    gate_weights_KOI = layer.gate_weights_KUI.repeat_interleave(copies, dim=1)
    return jacobian_NOI + torch.einsum("nko,koi->noi", pulls_NKO, gate_weights_KOI)


def gaussian_like(jacobian_NOI: Tensor, generator: torch.Generator) -> Tensor:
    """Return a standard-normal matrix per Jacobian, with 0 in rows that are 0 in the Jacobian."""
    gaussian_NOI = torch.randn(jacobian_NOI.shape, generator=generator, dtype=jacobian_NOI.dtype)
    return gaussian_NOI.to(jacobian_NOI.device) * (jacobian_NOI != 0).any(dim=2, keepdim=True)


def spectrum_metrics(
    sigma_NR: NDArray[np.float64], zero_rows_N: NDArray[np.int64], gaussian_NR: NDArray[np.float64]
) -> dict[str, Metric]:
    """Return the finite metrics of one layer's Jacobians.

    `sigma_NR` has each Jacobian's descending singular values, `gaussian_NR` those of a Gaussian
    matrix with the same zero rows. `zero_rows_N` counts a Jacobian's rows that are exactly 0, in a
    chain those of the layer with the most.

    - `zero_share`: share of rows that are 0. `singular_share`: share of Jacobians with a row of 0,
      which have no condition number.
    - `vanishing_EPSILON`: share of singular values that are at most EPSILON times the largest of
      their Jacobian. `mean_vanishing_1e-3`: the same for the mean spectrum.
    - `log10_condition`: median over inputs of log10(largest / smallest singular value), including
      infinite ratios.
    - `log10_condition_nonzero`: the same without the singular values of rows of 0. It grows with
      the number of nonzero rows, so `log10_condition_excess` subtracts the Gaussian matrices'
      value.
    - `sigma_max`, `sigma_middle`, `sigma_min`, `entropy_rank`, `stable_rank`,
      `effective_rank_1e-3`: of the mean spectrum.
    - `first_half_r2`: R^2 of a straight line through the mean spectrum's first half.
    - `input_spread`: standard deviation over inputs, in the spectrum's first half, divided by the
      mean.
    """
    width = sigma_NR.shape[1]
    # A row of 0 makes a singular value of 0; rounding may have computed another value. Other zeros
    # are known only up to rounding.
    is_zero_NR = np.arange(width) >= width - zero_rows_N[:, None]
    is_zero_NR |= sigma_NR < width * np.finfo(float).eps * sigma_NR[:, :1]
    sigma_NR = np.where(is_zero_NR, 0.0, sigma_NR)
    mean_R = sigma_NR.mean(axis=0)
    half_R = mean_R[: width // 2]
    spread_R = sigma_NR.std(axis=0)[: width // 2]
    # A Jacobian of zeros has no condition number; at the study's widths none is ever drawn.
    nonzero_N = sigma_NR[:, 0] > 0
    with np.errstate(divide="ignore"):
        conditions_N = np.log10(sigma_NR[nonzero_N, 0] / sigma_NR[nonzero_N, -1])
    metrics = {
        "zero_share": float(zero_rows_N.mean()) / width,
        "singular_share": float((zero_rows_N > 0).mean()),
        **{
            f"vanishing_{name}": float((sigma_NR <= float(name) * sigma_NR[:, :1]).mean())
            for name in THRESHOLDS
        },
        "mean_vanishing_1e-3": float((mean_R <= 1e-3 * mean_R[0]).mean()),
        "sigma_max": float(mean_R[0]),
        "sigma_middle": float(half_R[-1]),
        "sigma_min": float(mean_R[-1]),
        "entropy_rank": entropy_rank(mean_R),
        "stable_rank": stable_rank(mean_R),
        "effective_rank_1e-3": effective_rank(mean_R, 1e-3),
    }
    condition = _nonzero_condition(sigma_NR[nonzero_N], zero_rows_N[nonzero_N])
    optional_metrics = {
        "log10_condition": np.median(conditions_N) if nonzero_N.any() else np.inf,
        "log10_condition_nonzero": condition,
        "log10_condition_excess": condition
        - _nonzero_condition(gaussian_NR[nonzero_N], zero_rows_N[nonzero_N]),
        "first_half_r2": np.corrcoef(np.arange(len(half_R)), half_R)[0, 1] ** 2
        if np.ptp(half_R) > 0
        else np.inf,
        "input_spread": spread_R.sum() / half_R.sum() if half_R.sum() > 0 else np.inf,
    }
    return metrics | {
        name: float(value) for name, value in optional_metrics.items() if np.isfinite(value)
    }


def _nonzero_condition(sigma_NR: NDArray[np.float64], zero_rows_N: NDArray[np.int64]) -> float:
    if not len(sigma_NR):
        return math.nan
    last_N = sigma_NR.shape[1] - zero_rows_N - 1
    least_N = sigma_NR[np.arange(len(sigma_NR)), last_N]
    with np.errstate(divide="ignore"):
        return float(np.median(np.log10(sigma_NR[:, 0] / least_N)))
