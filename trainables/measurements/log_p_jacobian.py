"""Jacobian J of log P with respect to one context vector, V x C.

Each column is exact up to a constant, which a softmax ignores. Shapes: N copies of the context.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trainables.output_layers import (
    MixtureOfContexts,
    MixtureOfSoftmaxes,
    OutputLayer,
    Pointwise,
    PointwiseSoftmax,
)

COPIES = 128
"""Number of rows of J that one backward pass computes."""


@torch.no_grad()
def log_p_jacobian(layer: OutputLayer, weight_VD: Tensor, context_C: Tensor) -> Tensor:
    """Return the Jacobian of log P at `context_C`, V x C, in the dtype of context and layer.

    The layer must be in evaluation mode. A user's layer must compute each row of log P from its own
    context alone.
    """
    if type(layer) is PointwiseSoftmax:
        logits_V = torch.addmv(layer.bias_V, weight_VD, context_C)
        return _slopes(layer.function, logits_V).unsqueeze(1) * weight_VD
    if type(layer) is MixtureOfContexts:
        return _mixed_contexts_jacobian(layer, weight_VD, context_C)
    if type(layer) is MixtureOfSoftmaxes:
        return _mixed_softmaxes_jacobian(layer, weight_VD, context_C)
    return jacobian_by_backpropagation(layer, weight_VD, context_C)


def jacobian_by_backpropagation(layer: OutputLayer, weight_VD: Tensor, context_C: Tensor) -> Tensor:
    """Return the Jacobian of any layer's log P, V x C, by autograd."""
    rows = list[Tensor]()
    for words_N in torch.arange(len(weight_VD), device=context_C.device).split(COPIES):
        copies_NC = context_C.expand(len(words_N), -1).clone().requires_grad_()
        # Without gradients, layers of this package overwrite logits.
        with torch.enable_grad():
            log_p_NV = layer.log_probabilities(copies_NC, weight_VD)
            rows += torch.autograd.grad(log_p_NV.gather(1, words_N.unsqueeze(1)).sum(), copies_NC)
    return torch.cat(rows)


def _slopes(function: Pointwise, logits: Tensor) -> Tensor:
    with torch.enable_grad():
        logits = logits.detach().requires_grad_()
        [slopes] = torch.autograd.grad(function(logits.clone()).sum(), logits)
    return slopes


def _mixed_contexts_jacobian(
    layer: MixtureOfContexts, weight_VD: Tensor, context_C: Tensor
) -> Tensor:
    prior_K, prior_by_context_KC, latent_KD, latent_by_context_KDC = _parts(layer, context_C)
    logits_V = torch.addmv(layer.bias_V, weight_VD, prior_K @ latent_KD)
    # J = diag(f') W times the derivative of sum_k pi_k h_k.
    mixed_DC = torch.einsum("k,kdc->dc", prior_K, latent_by_context_KDC)
    mixed_DC += torch.einsum("k,kd,kc->dc", prior_K, latent_KD, prior_by_context_KC)
    return _slopes(layer.function, logits_V).unsqueeze(1) * (weight_VD @ mixed_DC)


def _mixed_softmaxes_jacobian(
    layer: MixtureOfSoftmaxes, weight_VD: Tensor, context_C: Tensor
) -> Tensor:
    prior_K, prior_by_context_KC, latent_KD, latent_by_context_KDC = _parts(layer, context_C)
    logits_KV = latent_KD @ weight_VD.T + layer.bias_V
    slopes_KV = _slopes(layer.function, logits_KV)
    log_p_KV = torch.log_softmax(layer.function(logits_KV), dim=1)
    p_KV, shares_KV = log_p_KV.exp(), torch.softmax(prior_K.log().unsqueeze(1) + log_p_KV, dim=0)
    # J = sum_k s_k (J_k + d log pi_k / dh), with s_kv the share of component k in P of word v.
    # J_k is diag(f') W dh_k / dh minus its mean under component k.
    jacobian_VC = shares_KV.T @ prior_by_context_KC
    for k in range(layer.mixtures):
        component_VC = slopes_KV[k].unsqueeze(1) * (weight_VD @ latent_by_context_KDC[k])
        jacobian_VC += shares_KV[k].unsqueeze(1) * (component_VC - p_KV[k] @ component_VC)
    return jacobian_VC


def _parts(
    layer: MixtureOfContexts | MixtureOfSoftmaxes, context_C: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    prior_K = layer.log_prior(context_C.unsqueeze(0)).squeeze(0).exp()
    latent_KD = layer.latent(context_C.expand(1, 1, -1)).squeeze(0)
    by_context_KDC = (1 - latent_KD.square()).unsqueeze(2) * layer.latent_KDC
    return prior_K, layer.prior_KC - prior_K @ layer.prior_KC, latent_KD, by_context_KDC
