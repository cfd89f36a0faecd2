"""The training loop, which can be interrupted after any step and resumed bit for bit.

Recipes (`trainables.training.recipe`) contain what differs between kinds of language model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from trainables.config import LanguageTrialConfig, TransformerTrialConfig
from trainables.corpora import Corpus
from trainables.device import (
    generator,
    global_random_states,
    products_in,
    set_global_random_states,
    wait,
)
from trainables.draws import mix_seed
from trainables.language_model import LanguageModel, LstmState
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.training.averaging import WeightAverage, weights_swapped
from trainables.training.lstm import LstmRecipe
from trainables.training.optimizers import optimizer_of
from trainables.training.progress import DivergedError, Progress, PrunedError
from trainables.training.recipe import Recipe, Window
from trainables.training.streams import mean_loss, parallel_streams
from trainables.training.transformer import TransformerRecipe
from trainables.trial_folder import EpochMetrics

if TYPE_CHECKING:
    from trainables.trial_folder import Checkpoints, Snapshot

MAX_LOSS = 100.0
"""Nats per token above which a run counts as diverged."""
ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")
"""Keys of a parameter's state in torch's Adam."""
STEPS_PER_LOOK = 50
"""Steps between two checks for divergence; a check fetches the loss from the device."""


RanksOf = Callable[[LanguageModel, Corpus, LanguageTrialConfig], dict[str, Any]]


def _recipe_of(config: LanguageTrialConfig, length: int) -> Recipe:
    if isinstance(config, TransformerTrialConfig):
        return TransformerRecipe(config, length)
    return LstmRecipe(config, length)


class Trainer:
    """Trains one model on one corpus.

    After every epoch, `ranks` measures the weights that validation used.
    """

    def __init__(
        self,
        config: LanguageTrialConfig,
        corpus: Corpus,
        runtime: Runtime,
        ranks: RanksOf = lambda *_: {},
    ) -> None:
        self.config, self.corpus, self.runtime, self._ranks = config, corpus, runtime, ranks
        training, evaluation = config.training, config.evaluation
        # For a user's own output layers, which may draw from the global generators.
        torch.manual_seed(config.seed)
        self.draws = torch.Generator().manual_seed(config.seed)
        self.streams_TB = parallel_streams(corpus.train, training.batch_size, runtime.device)
        self._recipe = _recipe_of(config, len(self.streams_TB))
        self.longest_window = self._recipe.longest_window
        self.model = self._recipe.model(corpus, self.draws)
        self.model.to(runtime.device)
        self.model.train_in(training.precision)
        self.masks = generator(config.seed, runtime.device)
        self._parameters = tuple(self.model.parameters())
        self.optimizer = optimizer_of(self.model, training)
        self.valid = corpus.valid[: evaluation.valid_tokens]
        self.state: list[LstmState] = self.model.zero_state(training.batch_size)
        self.epoch_loss = torch.zeros((), dtype=torch.float64, device=runtime.device)
        self.progress = Progress(position=self._recipe.first_position(self.draws))
        self.ends_epoch = False
        self.average: WeightAverage | None = None
        self.kept: dict[str, Tensor] = {}

    def train(
        self,
        checkpoints: Checkpoints,
        on_epoch: Callable[[EpochMetrics], None],
        stop_above: Mapping[int, float] = MappingProxyType({}),
    ) -> None:
        """Train from the current progress to the last epoch. Raises DivergedError.

        `stop_above` maps epochs to limits of the validation loss (nats per token). Raises
        PrunedError after an epoch whose loss exceeds its limit, also if an earlier run trained that
        epoch.
        """
        while not self.finished:
            self.raise_if_pruned(stop_above)
            start_s = time.monotonic()
            self.step()
            self.settle(time.monotonic() - start_s, checkpoints, on_epoch)

    @property
    def finished(self) -> bool:
        """Return True if all epochs are over."""
        return len(self.progress.epochs) >= self.config.training.epochs

    def settle(
        self,
        step_s: float,
        checkpoints: Checkpoints,
        on_epoch: Callable[[EpochMetrics], None],
        valid_loss: float | None = None,
        together: int = 1,
    ) -> None:
        """Finish a step that took `step_s` seconds: end a complete epoch, write a due checkpoint.

        For `valid_loss`, see `end_epoch`. `together`: number of trials that wait for each other's
        checkpoints. Raises DivergedError.
        """
        progress, start_s = self.progress, time.monotonic()
        progress.epoch_seconds += step_s
        if progress.step % STEPS_PER_LOOK == 0:
            self._raise_if_diverged(self.epoch_loss.item() / progress.epoch_tokens, "train")
        if self.ends_epoch:
            on_epoch(self.end_epoch(valid_loss))
        now = time.monotonic()
        progress.wall_seconds += step_s + now - start_s
        if checkpoints.due(self.runtime.checkpoint_every_s, together):
            PULSE.enter("at a checkpoint")
            wait(self.runtime.device)  # exclude queued steps from the checkpoint's time
            checkpoints.begin(progress.step, *self.snapshot())

    def step(self) -> None:
        """Train on one window."""
        training, model = self.config.training, self.model
        window = self.next_window()
        with products_in(training.precision, self.runtime.device):
            loss, objective = self._forward(window)
            for parameter in self._parameters:
                parameter.grad = None
            objective.backward()
        clip_grad_norm_(self._parameters, training.gradient_clip_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(window, group["base_lr"])
        self.optimizer.step()
        if self.average is not None:
            self.average.update(model)
        self.epoch_loss += loss.detach().double() * window.steps * training.batch_size
        self.advance(window)

    def _forward(self, window: Window) -> tuple[Tensor, Tensor]:
        model = self.model.train()
        inputs_TB, targets_N = self.tokens(window)
        contexts = model.contexts(inputs_TB, self.state, self.masks)
        self.state = contexts.state
        loss = model.output.loss(contexts.dropped_TBC, model.output_weight(), targets_N, self.masks)
        return loss, self._recipe.objective(loss, contexts)

    def next_window(self) -> Window:
        """Draw the window of the next step."""
        progress = self.progress
        PULSE.begin_step(len(progress.epochs) + 1, progress.step + 1)
        return self._recipe.window(progress.position, self.draws)

    def tokens(self, window: Window) -> tuple[Tensor, Tensor]:
        """Return the window's inputs, T x B, and its T B targets as one vector."""
        return (
            self.streams_TB[window.start : window.end],
            self.streams_TB[window.start + 1 : window.end + 1].reshape(-1),
        )

    def rate(self, window: Window, base_rate: float) -> float:
        """Return this step's learning rate; `base_rate` is the rate in the config."""
        tokens = self.progress.tokens + window.steps * self.config.training.batch_size
        return self._recipe.rate(base_rate, window, tokens)

    def advance(self, window: Window) -> None:
        """Count a completed step.

        An epoch ends after `epoch_tokens` tokens or, by default, at the end of the text. Training
        then goes through the text again.
        """
        progress, training = self.progress, self.config.training
        tokens = window.steps * training.batch_size
        progress.step += 1
        progress.tokens += tokens
        progress.epoch_tokens += tokens
        progress.position = window.end
        is_end = self._recipe.pass_is_over(window.end)
        limit = training.epoch_tokens
        self.ends_epoch = is_end if limit is None else progress.epoch_tokens >= limit
        if is_end:
            progress.position = self._recipe.first_position(self.draws)
            self.state = self.model.zero_state(training.batch_size)

    def end_epoch(self, valid_loss: float | None = None) -> EpochMetrics:
        """Validate, measure ranks, keep the best weights, and decide whether to start averaging.

        A caller that has already validated passes `valid_loss`.
        """
        progress, evaluation = self.progress, self.config.evaluation
        number = len(progress.epochs) + 1
        train_loss = self.epoch_loss.item() / progress.epoch_tokens
        self._raise_if_diverged(train_loss, "train")
        PULSE.enter("in validation")
        with weights_swapped(self.model, self.average), products_in("float32", self.runtime.device):
            if valid_loss is None:
                batch, window = evaluation.valid_batch_size, evaluation.window
                valid_loss = mean_loss(self.model, self.valid, batch=batch, window=window)
            self._raise_if_diverged(valid_loss, "validation")
            ranks = self._ranks(self.model, self.corpus, self.config)
            losses = [epoch.valid_loss for epoch in progress.epochs]
            if valid_loss < min(losses, default=math.inf):
                self.kept = {name: p.detach().clone() for name, p in self.model.named_parameters()}
                progress.kept_epoch = number
        metrics = EpochMetrics(
            epoch=number,
            tokens=progress.tokens,
            train_loss=train_loss,
            valid_loss=valid_loss,
            averaging=self.average is not None,
            seconds=progress.epoch_seconds,
            **ranks,
        )
        if self.average is None and self._recipe.starts_averaging([*losses, valid_loss]):
            self.average = WeightAverage(self.model)
        progress.epochs.append(metrics)
        progress.epoch_tokens, progress.epoch_seconds, self.ends_epoch = 0, 0.0, False
        self.epoch_loss.zero_()
        return metrics

    def _raise_if_diverged(self, loss: float, name: str) -> None:
        if not loss <= MAX_LOSS:
            epoch, step = len(self.progress.epochs) + 1, self.progress.step
            raise DivergedError(
                f"the {name} loss became {loss:.3g} nats per token in epoch {epoch}, step {step}"
            )

    def raise_if_pruned(self, stop_above: Mapping[int, float]) -> None:
        """Raise PrunedError if the last epoch's loss exceeds its limit (see `train`)."""
        losses = [epoch.valid_loss for epoch in self.progress.epochs]
        limit = stop_above.get(len(losses), math.inf)
        if losses and losses[-1] > limit:
            raise PrunedError(
                f"stopped after epoch {len(losses)}: its validation loss of {losses[-1]:.5f} nats "
                f"per token exceeded {limit:.5f}, the limit from better trials; the trial's "
                f"lowest loss was {min(losses):.5f}"
            )

    @torch.no_grad()
    def take_weights(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy these weights into the model, such as those of the best validation loss, `kept`."""
        for name, parameter in self.model.named_parameters():
            parameter.copy_(tensors[name])

    def snapshot(self) -> Snapshot:
        """Return everything the next step depends on, as tensors and as JSON data."""
        tensors: dict[str, Tensor] = {
            f"model.{name}": p for name, p in self.model.named_parameters()
        }
        tensors |= {f"kept.{name}": tensor for name, tensor in self.kept.items()}
        if self.average is not None:
            tensors |= {f"average.{name}": tensor for name, tensor in self.average.tensors.items()}
            self.progress.averaging_steps = self.average.steps
        for index, (h, c) in enumerate(self.state):
            # Cloned: before the first step h and c are one tensor, which the file format refuses.
            tensors |= {f"state.{index}.h": h.clone(), f"state.{index}.c": c.clone()}
        for name, parameter in self.model.named_parameters():
            moments = self.optimizer.state.get(parameter, {})
            tensors |= {f"optimizer.{key}.{name}": moment for key, moment in moments.items()}
        tensors["epoch_loss"] = self.epoch_loss
        tensors |= {"random.draws": self.draws.get_state(), "random.masks": self.masks.get_state()}
        tensors |= global_random_states(self.runtime.device)
        return tensors, {"progress": self.progress.model_dump(mode="json")}

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> bool:
        """Restore a `snapshot`, and return whether it comes from this kind of device.

        If not, this device's generators are seeded from seed and step.
        """
        self.progress = Progress.model_validate(state["progress"])
        self.take_weights(_with_prefix(tensors, "model."))
        self.kept = _with_prefix(tensors, "kept.")
        if self.progress.averaging_steps is not None:
            self.average = WeightAverage(self.model)
            self.average.steps = self.progress.averaging_steps
            self.average.tensors = _with_prefix(tensors, "average.")
        for name, parameter in self.model.named_parameters():
            if f"optimizer.{ADAM_STATE[0]}.{name}" in tensors:
                self.optimizer.state[parameter] = {
                    key: tensors[f"optimizer.{key}.{name}"] for key in ADAM_STATE
                }
        self.state = [
            (tensors[f"state.{i}.h"], tensors[f"state.{i}.c"]) for i in range(len(self.state))
        ]
        self.epoch_loss = tensors["epoch_loss"]
        self.draws.set_state(tensors["random.draws"].cpu())
        set_global_random_states(tensors, self.runtime.device)
        masks = tensors["random.masks"].cpu()
        is_same_kind = masks.shape == self.masks.get_state().shape
        if is_same_kind:
            self.masks.set_state(masks)
        else:
            seed = mix_seed(self.config.seed, self.progress.step)
            self.masks.manual_seed(seed)
            torch.cuda.manual_seed(seed)  # ignored without a GPU
        return is_same_kind


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
