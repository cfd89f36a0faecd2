"""Mixtures of K contexts, mixed after the softmax (MoS) or before it (MoC) (Yang et al. 2018)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from trainables.draws import locked_dropout
from trainables.output_layers.base import LayerShape, OutputLayer, bent_log_softmax_
from trainables.output_layers.cross_entropy import linear_cross_entropy
from trainables.output_layers.pointwise import Pointwise, centred_bias


class Mixture(OutputLayer):
    """Mixture with weights pi = softmax(W_pi h) and contexts h_k = tanh(U_k h + b_k)."""

    def __init__(
        self,
        shape: LayerShape,
        *,
        mixtures: int,
        latent_dropout: float,
        function: Pointwise,
    ) -> None:
        super().__init__()
        self.mixtures = mixtures
        self.latent_dropout = latent_dropout
        self.bias_V = nn.Parameter(torch.zeros(shape.vocabulary_size))
        self.prior_KC = nn.Parameter(torch.empty(mixtures, shape.context_width))
        self.latent_KDC = nn.Parameter(
            torch.empty(mixtures, shape.embedding_width, shape.context_width)
        )
        self.latent_bias_KD = nn.Parameter(torch.empty(mixtures, shape.embedding_width))
        self.function = function

    def initialise(self, generator: torch.Generator) -> None:
        """Draw uniformly from +-1 / sqrt(C), as torch does."""
        bound = self.prior_KC.shape[1] ** -0.5
        for parameter in (self.prior_KC, self.latent_KDC, self.latent_bias_KD):
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        self.function.initialise(generator)

    def scale_start(self, log_share_V: Tensor, hidden_deviation: float) -> None:
        """Scale the weights U_k of the contexts, and set the biases."""
        self.latent_KDC.data *= (
            math.sqrt(3) / hidden_deviation
        )  # drawn with a deviation of 1 / sqrt(3 C)
        self.bias_V.data = centred_bias(self.function, log_share_V)

    def log_prior(self, hidden_NC: Tensor) -> Tensor:
        """Return log pi, N x K, in the precision of the weights."""
        logits_NK = linear(self.cast(hidden_NC), self.cast(self.prior_KC))
        return torch.log_softmax(logits_NK.to(self.prior_KC.dtype), dim=1)

    def latent(self, hidden_TBC: Tensor, masks: torch.Generator | None = None) -> Tensor:
        """Return the context vectors, N x K x D, with locked dropout if `masks` are given."""
        weight_XC, bias_X = self.latent_KDC.flatten(0, 1), self.latent_bias_KD.flatten()
        flat_TBX = torch.tanh(
            linear(self.cast(hidden_TBC), self.cast(weight_XC), self.cast(bias_X))
        )
        return locked_dropout(flat_TBX, self.latent_dropout, masks).reshape(
            -1, *self.latent_bias_KD.shape
        )


class MixtureOfSoftmaxes(Mixture):
    """P = sum_k pi_k softmax(f(W h_k + b)), in log space."""

    def log_probabilities(self, hidden_NC: Tensor, weight_VD: Tensor) -> Tensor:
        """Return log P, N x V."""
        log_prior_NK, latent_NKD = self.log_prior(hidden_NC), self.latent(hidden_NC.unsqueeze(1))
        log_p_NV: Tensor | None = None
        for k in range(self.mixtures):
            logits_NV = torch.addmm(self.bias_V, latent_NKD[:, k], weight_VD.t())
            expert_NV = bent_log_softmax_(self.function, logits_NV) + log_prior_NK[:, k, None]
            log_p_NV = expert_NV if log_p_NV is None else torch.logaddexp(log_p_NV, expert_NV)
        assert log_p_NV is not None, "a mixture has at least one expert"
        return log_p_NV

    def loss(
        self,
        hidden_TBC: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        masks: torch.Generator | None = None,
    ) -> Tensor:
        """Return the mean cross-entropy in nats."""
        log_prior_NK = self.log_prior(hidden_TBC.flatten(0, -2))
        latent_NKD = self.latent(hidden_TBC, masks)
        return linear_cross_entropy(
            self.cast(latent_NKD),
            weight_VD,
            self.bias_V,
            targets_N,
            self.function,
            log_prior_NK=log_prior_NK,
        )


class MixtureOfContexts(Mixture):
    """softmax(f(W sum_k pi_k h_k + b)): as many parameters as MoS, but the rank of one softmax."""

    def log_probabilities(self, hidden_NC: Tensor, weight_VD: Tensor) -> Tensor:
        """Return log P, N x V."""
        mixed_ND = self._mix_contexts(hidden_NC.unsqueeze(1), None)
        logits_NV = torch.addmm(self.bias_V, mixed_ND, weight_VD.t())
        return bent_log_softmax_(self.function, logits_NV)

    def loss(
        self,
        hidden_TBC: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        masks: torch.Generator | None = None,
    ) -> Tensor:
        """Return the mean cross-entropy in nats."""
        return linear_cross_entropy(
            self._mix_contexts(hidden_TBC, masks), weight_VD, self.bias_V, targets_N, self.function
        )

    def _mix_contexts(self, hidden_TBC: Tensor, masks: torch.Generator | None) -> Tensor:
        prior_NK = self.log_prior(hidden_TBC.flatten(0, -2)).exp()
        return torch.einsum(
            "nk,nkd->nd", self.cast(prior_NK), self.cast(self.latent(hidden_TBC, masks))
        )
