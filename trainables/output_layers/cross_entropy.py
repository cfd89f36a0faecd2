"""Cross-entropy of a linear layer, or of a mixture of them, without holding N x K x V logits.

Each chunk of rows goes forward and backward while it is in the processor's cache. GPU kernels
process all G models together; otherwise models are processed one by one.

With x_k the logits of expert k,

    log P(y) = logsumexp_k(log pi_k + x_k[y] - logsumexp(x_k)).

For a distribution P* over all words y, let r_k(y) = P(k | y) = exp(log pi_k + x_k[y] -
logsumexp(x_k) - log P(y)), a_k(y) = P*(y) r_k(y) and A_k = sum_y a_k(y). Then the loss's gradient
by x_k is A_k softmax(x_k) - a_k, and by log pi_k it is -A_k. For a target word, P* is onehot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from trainables.config import chunk_rows
from trainables.output_layers.fused import Inputs, fused_cross_entropy, is_fused
from trainables.output_layers.pointwise import Pointwise

Rows = tuple[Tensor, Tensor | None]
"""Targets and row weights. Without weights, the loss is the mean over rows."""
Result = tuple[Tensor, tuple[Tensor, ...]]


def linear_cross_entropy(
    hidden: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor,
    targets: Tensor,
    function: Pointwise,
    *,
    log_prior_NK: Tensor | None = None,
) -> Tensor:
    """Return the mean over N of -log P(target) in nats.

    P = sum_k pi_k softmax(f(hidden_k @ weight.T + bias)). `hidden` is N x D, or N x K x D with
    `log_prior_NK` (log pi). `targets` are N ids, or N x V probabilities for a float64 loss.
    Differentiable once. Matrix products use the dtype of `hidden`, sums the dtype of the weights.
    Raises ValueError if N = 0.
    """
    if targets.numel() == 0:
        raise ValueError("the cross-entropy of no rows is undefined. Pass at least one target.")
    hidden_NKD = hidden.unsqueeze(1) if log_prior_NK is None else hidden
    prior = hidden_NKD.new_zeros(hidden_NKD.shape[:2]) if log_prior_NK is None else log_prior_NK
    inputs = Inputs(*(t.unsqueeze(0) for t in (hidden_NKD, prior, weight_VD, bias_V)))
    parameters = [parameter.unsqueeze(0) for parameter in function.parameters()]
    return cross_entropies(inputs, (targets.unsqueeze(0), None), [function], parameters).squeeze(0)


def cross_entropies(
    inputs: Inputs, rows: Rows, functions: Sequence[Pointwise], parameters: Sequence[Tensor]
) -> Tensor:
    """Return every model's mean of -log P(target) in nats, shape G.

    `rows` has targets (G x N ids, or G x N x V probabilities) and row weights, G x N. A weight is 1
    / (number of rows in the model's window), or 0 beyond the window. `parameters` are those of
    `functions`, with a leading axis G. For several models, backward assumes that each loss has
    gradient 1, so differentiate the sum of the losses.
    """
    needs_gradient = any(tensor.requires_grad for tensor in (*inputs, *parameters))
    if torch.is_grad_enabled() and needs_gradient:
        apply: Callable[..., Tensor] = _CrossEntropies.apply
        return apply(*inputs, rows, functions, *parameters)
    return _forward(inputs, rows, functions, parameters, None)[0]


class _CrossEntropies(torch.autograd.Function):
    """The forward pass computes gradients as if each loss had gradient 1.

    If there is a single model, the backward pass multiplies them by the actual gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        prior: Tensor,
        weight: Tensor,
        bias: Tensor,
        rows: Rows,
        functions: Sequence[Pointwise],
        *parameters: Tensor,
    ) -> Tensor:
        inputs = Inputs(hidden, prior, weight, bias)
        gradients = Inputs(
            *(torch.zeros_like(t, memory_format=torch.contiguous_format) for t in inputs)
        )
        losses_G, by_parameters = _forward(inputs, rows, functions, parameters, gradients)
        ctx.save_for_backward(*gradients, *by_parameters)
        # Gradients for ids are already of the mean; those for probabilities are of the sum.
        ctx.divisor = 1 if rows[0].dim() == 2 else rows[0].shape[1]
        return losses_G

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_losses_G: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if len(by_losses_G) == 1:
            scale = by_losses_G.squeeze(0) / ctx.divisor
            gradients = [gradient * scale.to(gradient.dtype) for gradient in gradients]
        return (*gradients[:4], None, None, *gradients[4:])


def _forward(
    inputs: Inputs,
    rows: Rows,
    functions: Sequence[Pointwise],
    parameters: Sequence[Tensor],
    gradients: Inputs | None,
) -> Result:
    targets, weights = rows
    if is_fused(targets, functions, inputs.weight):
        if weights is None:
            weights = inputs.bias.new_full(targets.shape, 1 / targets.shape[1])
        rows = targets, weights
        losses, by_parameters = fused_cross_entropy(inputs, rows, functions, parameters, gradients)
        return losses.to(inputs.weight.dtype), by_parameters
    results = []
    for g, function in enumerate(functions):
        model_inputs, model_gradients = (
            None if tensors is None else Inputs(*(tensor[g] for tensor in tensors))
            for tensors in (inputs, gradients)
        )
        assert model_inputs is not None
        model_rows = targets[g], None if weights is None else weights[g]
        results.append(_compute_in_chunks(model_inputs, model_rows, function, model_gradients))
    model_losses, function_gradients = zip(*results, strict=True)
    losses = torch.stack(model_losses)
    if targets.dim() == 2:
        losses = losses.to(inputs.weight.dtype)
    return losses, tuple(map(torch.stack, zip(*function_gradients, strict=True)))


def _compute_in_chunks(
    inputs: Inputs,
    rows: Rows,
    function: Pointwise,
    gradients: Inputs | None,
) -> Result:
    """The `gradients` of weights and bias must start at zero.

    If targets are probabilities, `gradients` are those of the losses' sum over rows.
    """
    (targets, weights_N), (hidden_NKD, log_prior_NK, weight_VD, bias_V) = rows, inputs
    total, experts, width = hidden_NKD.shape
    logit_rows = chunk_rows(
        len(weight_VD), weight_VD.shape[1], weight_VD.element_size(), weight_VD.device.type
    )
    contexts = max(1, logit_rows // experts)  # a context's experts stay together
    # The size does not depend on the window: buffers of changing sizes fragment the heap over hours
    # of training.
    buffer = weight_VD.new_empty(contexts * experts, len(weight_VD))
    loss = torch.zeros((), dtype=torch.float64, device=weight_VD.device)
    chunk_pass = function.chunk_pass(function, buffer)
    factor_VD = weight_VD.to(hidden_NKD.dtype)
    for start in range(0, total, contexts):
        chunk = slice(start, min(start + contexts, total))
        hidden = hidden_NKD[chunk].reshape(-1, width)
        logits = buffer[: len(hidden)]
        _multiply(hidden, factor_VD, bias_V, out=logits)
        chunk_pass.apply_(logits)
        prior_nK, targets_n = log_prior_NK[chunk], targets[chunk]
        counts = total if weights_N is None else 1 / weights_N[chunk, None]
        if targets.dim() == 1:
            losses_n, by_prior_nK = _id_losses_(
                logits, prior_nK, targets_n, counts, loss_only=gradients is None
            )
        elif experts == 1:
            losses_n, by_prior_nK = _softmax_losses_(logits, targets_n), -torch.ones_like(prior_nK)
        else:
            losses_n, by_prior_nK = _mixture_losses_(logits, prior_nK, targets_n)
        loss += (
            losses_n.sum(dtype=torch.float64)
            if weights_N is None
            else (losses_n.double() / counts).sum()
        )
        if gradients is not None:
            gradients.log_prior[chunk] = by_prior_nK
            chunk_pass.pull_back_(logits)
            _add_gradients(gradients, chunk, logits, hidden, factor_VD)
    mean = loss / total if weights_N is None else loss
    return mean, () if gradients is None else chunk_pass.gradients()


def _id_losses_(
    logits: Tensor,
    log_prior_nK: Tensor,
    targets_n: Tensor,
    counts: Tensor | int,
    *,
    loss_only: bool,
) -> tuple[Tensor, Tensor]:
    """Return each context's loss, n x 1, and the gradient of loss / `counts` for log pi.

    Unless `loss_only`, overwrites the logits, (n K) x V, with the gradient for the logits.
    """
    experts = log_prior_nK.shape[1]
    targets = targets_n.repeat_interleave(experts)[:, None]
    logits.sub_(logits.amax(1, keepdim=True))
    target_logits = logits.gather(1, targets)
    normaliser = logits.exp_().sum(1, keepdim=True)
    joint_nK = log_prior_nK.to(logits.dtype) + (target_logits - normaliser.log()).view(-1, experts)
    log_p_n1 = joint_nK.logsumexp(1, keepdim=True)
    responsibility_nK = (joint_nK - log_p_n1).exp_().div_(counts)
    if not loss_only:
        column = responsibility_nK.view(-1, 1)
        logits.mul_(column / normaliser)
        logits.scatter_add_(1, targets, -column)
    return -log_p_n1, -responsibility_nK


def _softmax_losses_(logits_nV: Tensor, targets_nV: Tensor) -> Tensor:
    logits_nV.sub_(logits_nV.amax(1, keepdim=True))
    expected_n = torch.linalg.vecdot(logits_nV, targets_nV)
    normaliser_n1 = logits_nV.exp_().sum(1, keepdim=True)
    logits_nV.div_(normaliser_n1).sub_(targets_nV)
    return normaliser_n1.squeeze(1).log() - expected_n


def _mixture_losses_(
    logits: Tensor, log_prior_nK: Tensor, targets_nV: Tensor
) -> tuple[Tensor, Tensor]:
    logits_nKV = logits.view(*log_prior_nK.shape, -1)
    logits_nKV.sub_(logits_nKV.amax(2, keepdim=True))
    experts_nKV = logits_nKV.exp()
    normaliser_nK1 = experts_nKV.sum(2, keepdim=True)
    experts_nKV.div_(normaliser_nK1)
    joint_nKV = logits_nKV.add_(log_prior_nK.unsqueeze(2) - normaliser_nK1.log())
    greatest_nV = joint_nKV.amax(1)
    share_nKV = joint_nKV.sub_(greatest_nV.unsqueeze(1)).exp_()
    sum_nV = share_nKV.sum(1)
    share_nKV.mul_((targets_nV / sum_nV).unsqueeze(1))
    total_nK1 = share_nKV.sum(2, keepdim=True)
    losses_n = -torch.linalg.vecdot(sum_nV.log_().add_(greatest_nV), targets_nV)
    torch.addcmul(share_nKV.neg_(), total_nK1, experts_nKV, out=share_nKV)
    return losses_n, -total_nK1.squeeze(2)


def _multiply(hidden: Tensor, factor_VD: Tensor, bias_V: Tensor, *, out: Tensor) -> None:
    if factor_VD.dtype == out.dtype:
        torch.addmm(bias_V, hidden, factor_VD.t(), out=out)
    else:
        out.copy_(hidden @ factor_VD.t()).add_(bias_V)


def _add_gradients(
    gradients: Inputs, chunk: slice, logits: Tensor, hidden: Tensor, factor_VD: Tensor
) -> None:
    gradients.bias.add_(logits.sum(0))
    out = gradients.hidden[chunk].view(hidden.shape)
    if factor_VD.dtype == logits.dtype == out.dtype:
        torch.mm(logits, factor_VD, out=out)
        gradients.weight.addmm_(logits.t(), hidden)
    else:
        factor = logits.to(factor_VD.dtype)
        out.copy_(factor @ factor_VD)
        gradients.weight.add_(factor.t() @ hidden)
