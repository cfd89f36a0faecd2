"""Values and gradients: stacks compared with trials trained alone, layers with float64.

An error is the norm of the difference, relative to the norm of the truth, unless noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple, get_args
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from gpu_proof.parts import stacked_contexts, stacked_losses
from gpu_proof.report import Question
from gpu_proof.trials import (
    CORPORA,
    LAYERS,
    STACKED,
    TINY_CORPUS,
    layer_config,
    new_trainers,
    numbers_of,
    scale_on,
)
from trainables.config import LanguageModelConfig, MixtureConfig, OutputLayerConfig, SoftmaxConfig
from trainables.device import Precision, generator, on_gpu, products_in
from trainables.language_model import AwdLstm
from trainables.output_layers import LayerShape, build_output_layer, fused
from trainables.stack import Stack
from trainables.training import Trainer

Optimizer = Literal["sgd", "adam", "adamw"]
OPTIMIZERS: tuple[Optimizer, ...] = get_args(Optimizer)
STEPS = 10
# Not multiples of a kernel's block size.
VOCABULARY, WIDTH, ROWS = 1_003, 40, 37
PAPER_SHAPE_LIMITS: dict[str, dict[Precision, float]] = {
    "softmax": {"float32": 1e-5, "bf16": 6e-3},
    "gss": {"float32": 1e-5, "bf16": 6e-3},
    "softcap": {"float32": 1e-5, "bf16": 6e-3},
    "mos": {"float32": 1e-5, "bf16": 1e-2},
    # 100,000 intervals: near an interval's end, rounding may move a logit into the next interval,
    # and in bf16 by up to ten intervals.
    "lms_plif": {"float32": 5e-3},
}


def questions(device: str, _folder: Path) -> Iterator[Question]:
    """Yield comparisons with float64 and with trials trained alone."""
    for name, limit, error in _errors():
        yield Question(name, partial(error, device), limit)
    corpora = list(CORPORA) if on_gpu(device) else ["ptb"]  # tiny corpora have the same shape
    for corpus, (name, limits) in product(corpora, PAPER_SHAPE_LIMITS.items()):
        for models, (precision, limit) in product((3, 16), limits.items()):
            shape = StackShape.on(device, corpus, name, models)
            error = partial(stacked_loss_error, device, name, shape, precision)
            yield Question(
                f"loss and gradients of {models} models, {precision}, {corpus}, {name}",
                error,
                limit,
            )


def _errors() -> Iterator[tuple[str, float, Callable[[str], float]]]:
    for optimizer in OPTIMIZERS:
        yield (
            f"a stack's weights in float64, {optimizer}",
            1e-9,
            partial(stack_error, optimizer=optimizer),
        )
    for name in STACKED:
        yield f"a stack's perplexity in float32, {name}", 1e-3, partial(perplexity_error, name=name)
    for name in STACKED[:4]:
        yield (
            f"a stack's perplexity in bf16, {name}",
            1e-2,
            partial(perplexity_error, name=name, precision="bf16"),
        )
        transformers = partial(perplexity_error, name=name, optimizer="adamw")
        yield f"a stack's perplexity in float32, {name}, adamw", 1e-3, transformers
        yield (
            f"a stack's perplexity in bf16, {name}, adamw",
            1e-2,
            partial(transformers, precision="bf16"),
        )
    yield "LSTM layers of a stack, float32", 1e-5, lstm_error
    for name in LAYERS:
        yield f"loss and gradients, float32, {name}", 1e-4, partial(layer_error, name=name)
        yield (
            f"loss and gradients, bf16, {name}",
            0.03,
            partial(layer_error, name=name, product_dtype=torch.bfloat16),
        )


def _trainers(
    device: str,
    names: Sequence[str],
    *,
    optimizer: Optimizer = "sgd",
    precision: Precision = "float32",
) -> list[Trainer]:
    if optimizer == "adamw":
        return new_trainers(device, names, "transformer", precision=precision)
    rate = 0.003 if optimizer == "adam" else 5.0
    return new_trainers(device, names, precision=precision, optimizer=optimizer, learning_rate=rate)


def _steps(step: Callable[[], None]) -> None:
    for _ in range(STEPS):
        step()


def _step_alone(trainers: list[Trainer]) -> None:
    for trainer in trainers:
        _steps(trainer.step)


def stack_error(device: str, optimizer: Optimizer) -> float:
    """Return a stack's largest error in an element of any tensor; relative for elements above 1."""
    with _float64_default():
        lone_trainers, stack_trainers = (
            _trainers(device, STACKED, optimizer=optimizer) for _ in range(2)
        )
        _step_alone(lone_trainers)
        _steps(Stack(stack_trainers).step)
    return _max_error(
        float(((tensor - expected).abs() / expected.abs().clamp(min=1)).max())
        for trainer, reference in zip(stack_trainers, lone_trainers, strict=True)
        for tensor, expected in zip(
            numbers_of(trainer).values(), numbers_of(reference).values(), strict=True
        )
    )


def perplexity_error(
    device: str, name: str, precision: Precision = "float32", optimizer: Optimizer = "sgd"
) -> float:
    """Return the largest relative error of three stacked trials' perplexities."""
    lone_trainers, stack_trainers = (
        _trainers(device, (name,) * 3, optimizer=optimizer, precision=precision) for _ in range(2)
    )
    _step_alone(lone_trainers)
    _steps(Stack(stack_trainers).step)
    results, expected = (
        torch.stack(
            [trainer.epoch_loss / trainer.progress.epoch_tokens for trainer in trainers]
        ).exp()
        for trainers in (stack_trainers, lone_trainers)
    )
    return float((results / expected - 1).abs().max())


def _max_error(errors: Iterable[float]) -> float:
    # torch's maximum is NaN if any error is NaN.
    return float(torch.tensor(list(errors)).max())


def lstm_error(device: str) -> float:
    """Return the largest error of two models with windows of different lengths."""
    width, hidden, lengths, batch = (
        (400, 1150, (35, 29), 20) if on_gpu(device) else (WIDTH, 3 * WIDTH + 1, (7, 5), 3)
    )
    config = LanguageModelConfig(embedding_width=width, hidden_width=hidden, context_width=width)
    models = [AwdLstm(config, SoftmaxConfig(), VOCABULARY) for _ in lengths]
    random = torch.Generator().manual_seed(0)
    for model in models:
        model.initialise(random)
    tokens_GTB = torch.randint(VOCABULARY, (2, max(lengths), batch), generator=random)
    context_gradients = torch.randn(2, max(lengths), batch, width, generator=random)
    context_gradients[1, lengths[1] :] = 0
    tokens_GTB, context_gradients = tokens_GTB.to(device), context_gradients.to(device)
    truths = [
        _lstm_truth(*case) for case in zip(models, tokens_GTB, context_gradients, strict=True)
    ]
    with products_in("float32", device):
        models = [model.to(device) for model in models]
        contexts, gradients = stacked_contexts(models, tokens_GTB, lengths, context_gradients)
    errors = [
        _relative_error(contexts[g, :length], truths[g][0][:length])
        for g, length in enumerate(lengths)
    ]
    for name, of_models in gradients.items():
        errors += [_relative_error(of_models[g], truths[g][1][name]) for g in range(2)]
    return _max_error(errors)


def _lstm_truth(
    model: AwdLstm, tokens_TB: Tensor, context_gradients: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    truth = AwdLstm(model.config, SoftmaxConfig(), VOCABULARY).double()
    truth.load_state_dict(model.state_dict())
    truth.to(tokens_TB.device)
    weights = {name: p for name, p in truth.named_parameters() if not name.startswith("output.")}
    with torch.backends.cudnn.flags(enabled=False):  # cuDNN has gradients only in training mode
        contexts = (
            truth.eval().contexts(tokens_TB, truth.zero_state(tokens_TB.shape[1])).undropped_TBC
        )
    gradients = torch.autograd.grad(contexts, list(weights.values()), context_gradients.double())
    return contexts.detach(), dict(zip(weights, gradients, strict=True))


def layer_error(device: str, name: str, product_dtype: torch.dtype | None = None) -> float:
    """Return the largest error of an output layer's loss and gradients."""
    config = _without_dropout(layer_config(name, "ptb", "tiny"))
    shape = LayerShape(vocabulary_size=VOCABULARY, embedding_width=WIDTH, context_width=WIDTH)
    random = torch.Generator().manual_seed(0)
    layer = build_output_layer(config, shape)
    layer.initialise(random)
    with torch.no_grad():
        layer.get_parameter("bias_V").normal_(generator=random)
    hidden_TBC = torch.randn(ROWS, 1, WIDTH, generator=random)
    weight_VD = torch.randn(VOCABULARY, WIDTH, generator=random) / WIDTH**0.5
    targets_N = torch.randint(VOCABULARY, (ROWS,), generator=random)
    reference = build_output_layer(config, shape).double()
    reference.load_state_dict(layer.state_dict())
    layer.to(device)
    layer.product_dtype = product_dtype

    def results(device: str, dtype: torch.dtype) -> list[Tensor]:
        hidden, weight = (
            t.to(device, dtype, copy=True).requires_grad_() for t in (hidden_TBC, weight_VD)
        )
        if dtype == torch.float64:
            parameters = list(reference.parameters())
            loss = nll_loss(reference.log_probabilities(hidden.flatten(0, 1), weight), targets_N)
        else:
            parameters = list(layer.parameters())
            loss = layer.loss(hidden, weight, targets_N.to(device))
        inputs = [hidden, weight, *(p for p in parameters if p.requires_grad)]
        return [loss.detach(), *torch.autograd.grad(loss, inputs)]

    truth = results("cpu", torch.float64)
    with products_in("float32", device):
        return _max_error(map(_relative_error, results(device, torch.float32), truth))


class StackShape(NamedTuple):
    """Sizes of a stack's output layers; `rows`: contexts of the longest window."""

    vocabulary: int
    width: int
    models: int
    rows: int

    @classmethod
    def on(cls, device: str, corpus: str, name: str, models: int) -> StackShape:
        """Return the papers' sizes on a GPU, tiny ones on a CPU.

        Mixtures get fewer rows, so that float64 logits fit.
        """
        if not on_gpu(device):
            return cls(TINY_CORPUS[2], 8, models, ROWS)
        mixture = isinstance(layer_config(name, corpus), MixtureConfig)
        return cls(CORPORA[corpus][2], 400, models, 101 if mixture else 1_403)


def stacked_loss_error(device: str, name: str, shape: StackShape, precision: Precision) -> float:
    """Return the largest error of a stack's losses and gradients; windows differ in length.

    Stacks of three use the smallest chunks. Only the first and last model are compared.
    """
    layer = _without_dropout(layer_config(name, "ptb", scale_on(device)))
    config = LanguageModelConfig(
        embedding_width=shape.width, hidden_width=8, context_width=shape.width
    )
    random = generator(0, device)
    with torch.device(device):
        models = [AwdLstm(config, layer, shape.vocabulary) for _ in range(shape.models)]
        for model in models:
            model.initialise(random)
            model.output.get_parameter("bias_V").data.normal_(generator=random)
            model.train_in(precision)
        hidden_GNC = torch.randn(shape.models, shape.rows, shape.width, generator=random)
        targets_GN = torch.randint(shape.vocabulary, (shape.models, shape.rows), generator=random)
    lengths = [shape.rows - 5 * (g % 3) for g in range(shape.models)]
    ends = 0, shape.models - 1
    truths = {
        g: _loss_truth(models[g], layer, hidden_GNC[g], targets_GN[g, : lengths[g]]) for g in ends
    }
    with (
        _small_chunks(shape) if shape.models == 3 else nullcontext(),
        products_in("float32", device),
    ):
        results = stacked_losses(models, hidden_GNC, targets_GN, lengths)
    return _max_error(
        _relative_error(results[name][g], truth) for g in ends for name, truth in truths[g].items()
    )


@contextmanager
def _small_chunks(shape: StackShape) -> Iterator[None]:
    # Kernels get at least three chunks per window; without kernels, chunks are minimal.
    config_chunks = patch.multiple(
        "trainables.config.output_layer", CPU_CHUNK_BYTES=1, GPU_CHUNK_BYTES=1
    )
    bf16_bytes = 2 * shape.models * shape.rows * shape.vocabulary
    with config_chunks, patch.object(fused, "CHUNK_BYTES", bf16_bytes // 3):
        yield


def _loss_truth(
    model: AwdLstm, layer: OutputLayerConfig, hidden_NC: Tensor, targets_N: Tensor
) -> dict[str, Tensor]:
    vocabulary, width = model.embedding_VD.shape
    shape = LayerShape(
        vocabulary_size=vocabulary, embedding_width=width, context_width=hidden_NC.shape[1]
    )
    reference = build_output_layer(layer, shape).double().to(hidden_NC.device)
    reference.load_state_dict(model.output.state_dict())
    hidden, weight = (t.detach().double().requires_grad_() for t in (hidden_NC, model.embedding_VD))
    loss = nll_loss(reference.log_probabilities(hidden[: len(targets_N)], weight), targets_N)
    inputs = {"hidden": hidden, "embedding_VD": weight} | {
        f"output.{name}": p for name, p in reference.named_parameters() if p.requires_grad
    }
    return {"loss": loss.detach()} | dict(
        zip(inputs, torch.autograd.grad(loss, list(inputs.values())), strict=True)
    )


def _without_dropout(config: OutputLayerConfig) -> OutputLayerConfig:
    return (
        config.model_copy(update={"latent_dropout": 0.0})
        if hasattr(config, "latent_dropout")
        else config
    )


def _relative_error(value: Tensor, truth: Tensor) -> float:
    value = value.detach().to(truth.device, truth.dtype)
    return float((value - truth).norm() / truth.norm().clamp(min=1e-30))


@contextmanager
def _float64_default() -> Iterator[None]:
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
