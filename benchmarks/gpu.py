"""Seconds per epoch and peak memory of each output layer at paper scale on a GPU, beside the paper's V100.

`python -m benchmarks.gpu` needs torch and pydantic only: neither Ray, nor a network, nor a corpus (tokens are random;
the time of a step does not depend on them). An epoch's time is that of `--steps` training steps, scaled to all of them.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from orchestrator.estimates import V100_SECONDS_PER_EPOCH
from trainables.config import CorpusConfig, GssConfig, OutputLayerConfig, SigSoftmaxConfig, SoftmaxConfig, TrialConfig
from trainables.corpora import Corpus
from trainables.memory import PeakMemory
from trainables.runtime import Runtime
from trainables.training.loop import Trainer

LAYERS: dict[str, OutputLayerConfig] = {
    "softmax": SoftmaxConfig(),
    "sigsoftmax": SigSoftmaxConfig(),
    "gss": GssConfig(c=-1.5, k=2.5),
}
CORPORA = {"ptb": (929_589, 10_000, 20), "wikitext-2": (2_088_628, 33_278, 80)}
"""Train tokens, vocabulary, batch size."""


def random_corpus(name: str) -> Corpus:
    """Random tokens of the corpus' sizes."""
    tokens, vocabulary, _ = CORPORA[name]
    numbers = np.random.default_rng(0)
    text = numbers.integers(vocabulary, size=tokens)
    return Corpus(
        name=name, train=text, valid=text[:10_000], test=text[:1_000], vocabulary=tuple(map(str, range(vocabulary)))
    )


def time_layer(name: str, layer: OutputLayerConfig, corpus: Corpus, device: str, steps: int) -> tuple[float, float]:
    """Seconds per epoch, and peak memory in MiB."""
    base = TrialConfig(seed=141, corpus=CorpusConfig(name=name, sha256="0" * 64), output_layer=layer)
    training = base.training.model_copy(update={"batch_size": CORPORA[name][2]})
    trainer = Trainer(base.model_copy(update={"training": training}), corpus, Runtime(device=device))
    memory = PeakMemory(device)
    _steps(trainer, 5)
    _wait(device)
    tokens, start_s = trainer.progress.tokens, time.perf_counter()
    _steps(trainer, steps)
    _wait(device)
    seconds = time.perf_counter() - start_s
    return seconds * len(corpus.train) / (trainer.progress.tokens - tokens), memory.peak_mib()


def _steps(trainer: Trainer, steps: int) -> None:
    for _ in range(steps):
        trainer.step()
        trainer.epoch_is_over()


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    """Print one line a corpus and layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no GPU here; --device cpu --steps 2 shows that the benchmark runs")
    hardware = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    print(f"{hardware}, torch {torch.__version__}, float32, {options.steps} steps")
    print(f"{'corpus':<12}{'layer':<12}{'s/epoch':>10}{'V100':>8}{'times':>8}{'peak MiB':>10}")
    for name in CORPORA:
        corpus = random_corpus(name)
        for label, layer in LAYERS.items():
            seconds, peak_mib = time_layer(name, layer, corpus, options.device, options.steps)
            published = V100_SECONDS_PER_EPOCH[name][label]
            print(f"{name:<12}{label:<12}{seconds:>10.1f}{published:>8.0f}{published / seconds:>8.2f}{peak_mib:>10.0f}")


if __name__ == "__main__":
    main()
