"""Mean singular values of an untrained layer's Jacobian over random inputs (Orhan 2018)."""

from __future__ import annotations

import zlib

import numpy as np
import torch

from trainables.config import LAYER_JACOBIAN, HiddenLayerConfig, LayerJacobianConfig
from trainables.draws import stream
from trainables.experiments.jacobian import gaussian_like, jacobian, spectrum_metrics
from trainables.experiments.mixture_of_experts import MixtureOfExperts
from trainables.measurements import Measured, singular_values
from trainables.runtime import Runtime

BATCH = 100
"""Jacobians that are held at a time."""


def measure(config: LayerJacobianConfig, runtime: Runtime) -> dict[str, Measured]:
    """Draw a layer and inputs from the seed, in float64; its spectrum is the mean over the inputs.

    Another layer of the same seed has other weights and inputs, and each is held beside Gaussian matrices of its own.
    """
    drawn, reference = (stream(config.seed, part) for part in _parts(config.layer))
    layer = make_layer(config.layer, config.width, config.width, gate_bias=False).double()
    layer.initialise(drawn)
    inputs_NI = _inputs(config, drawn)
    layer.to(runtime.device)
    spectra, gaussian, zero_rows = [], [], []
    for batch_NI in inputs_NI.split(BATCH):
        jacobian_NOI = jacobian(layer, batch_NI.to(runtime.device))
        spectra.append(singular_values(jacobian_NOI).cpu())
        gaussian.append(singular_values(gaussian_like(jacobian_NOI, reference)).cpu())
        zero_rows.append((jacobian_NOI == 0).all(dim=2).sum(dim=1).cpu())
    sigma_NR, zero_rows_N = torch.cat(spectra).numpy(), torch.cat(zero_rows).numpy()
    metrics = spectrum_metrics(sigma_NR, zero_rows_N, torch.cat(gaussian).numpy())
    return {LAYER_JACOBIAN: Measured(metrics=metrics, singular_values=np.sort(sigma_NR.mean(axis=0))[::-1].copy())}


def _parts(layer: HiddenLayerConfig) -> tuple[int, int]:
    """The numbers of the layer's own streams of random numbers: for its weights and inputs, and for what is beside."""
    description = layer.model_dump_json()
    return zlib.crc32(description.encode()), zlib.crc32(f"beside {description}".encode())


def make_layer(config: HiddenLayerConfig, input_width: int, width: int, *, gate_bias: bool) -> MixtureOfExperts:
    """The layer that a config describes; a dense layer is the mixture of one expert."""
    if config.name == "dense":
        return MixtureOfExperts(input_width, width, 1, softmax_gates=False)
    return MixtureOfExperts(
        input_width,
        width,
        config.experts,
        softmax_gates=config.gates == "softmax",
        gate_bias=gate_bias,
        gate_each_output=config.gate_for == "unit",
    )


def _inputs(config: LayerJacobianConfig, generator: torch.Generator) -> torch.Tensor:
    draw = torch.randn if config.input_distribution == "normal" else torch.rand
    return draw(config.inputs, config.width, generator=generator, dtype=torch.float64)
