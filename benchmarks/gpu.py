"""Seconds per epoch and peak memory of each output layer at paper scale on a GPU, beside the paper's V100.

`python -m benchmarks.gpu` needs torch and pydantic only: neither Ray, nor a network, nor a corpus (tokens are random;
the time of a step does not depend on them). An epoch's time is that of `--steps` training steps, scaled to all of them.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from search_spaces.awd_lstm import V100_SECONDS_PER_EPOCH, awd_lstm
from trainables.config import (
    CorpusConfig,
    GssConfig,
    LmsPlifConfig,
    MocConfig,
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftmaxConfig,
    TrialConfig,
)
from trainables.corpora import Corpus
from trainables.device import gpu_name, wait
from trainables.measurements import PeakMemory
from trainables.runtime import Runtime
from trainables.training import Trainer

LAYERS: dict[str, OutputLayerConfig] = {
    "softmax": SoftmaxConfig(),
    "sigsoftmax": SigSoftmaxConfig(),
    "gss": GssConfig(c=-1.5, k=2.5),
    "lms_plif": LmsPlifConfig(),
    "mos": MosConfig(),
    "moc": MocConfig(),
    "mos_plif": MosPlifConfig(),
    "monotone_nn": MonotoneNnConfig(),
}
CORPORA = {"ptb": (929_589, 10_000), "wikitext-2": (2_088_628, 33_278)}
"""Train tokens and vocabulary."""


def random_corpus(name: str) -> Corpus:
    """Random tokens of the corpus' sizes."""
    tokens, vocabulary = CORPORA[name]
    numbers = np.random.default_rng(0)
    text = numbers.integers(vocabulary, size=tokens)
    return Corpus(
        name=name, train=text, valid=text[:10_000], test=text[:1_000], vocabulary=tuple(map(str, range(vocabulary)))
    )


def paper_trial(name: str, layer: OutputLayerConfig, precision: str) -> TrialConfig:
    """The trial at paper scale, with its matrix products in this precision."""
    config = awd_lstm(CorpusConfig(name=name, sha256="0" * 64), layer)
    return config.model_copy(update={"training": config.training.model_copy(update={"precision": precision})})


def time_trial(config: TrialConfig, corpus: Corpus, device: str, steps: int) -> tuple[float, float]:
    """Seconds per epoch, and peak memory in MiB."""
    trainer = Trainer(config, corpus, Runtime(device=device))
    memory = PeakMemory(device)
    _steps(trainer, 5 if device == "cuda" else 1)
    wait(device)
    tokens, start_s = trainer.progress.tokens, time.perf_counter()
    _steps(trainer, steps)
    wait(device)
    seconds = time.perf_counter() - start_s
    return seconds * len(corpus.train) / (trainer.progress.tokens - tokens), memory.peak_mib()


def _steps(trainer: Trainer, steps: int) -> None:
    for _ in range(steps):
        trainer.step()
        trainer.epoch_is_over()


def main() -> None:
    """Print one line a corpus and layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--corpora", nargs="+", choices=tuple(CORPORA), default=tuple(CORPORA))
    parser.add_argument("--layers", nargs="+", choices=tuple(LAYERS), default=tuple(LAYERS))
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no GPU here; --device cpu --steps 2 shows that the benchmark runs")
    hardware = gpu_name() if options.device == "cuda" else "CPU"
    print(f"{hardware}, torch {torch.__version__}, {options.steps} steps")
    print(f"{'corpus':<12}{'layer':<12}{'precision':<10}{'s/epoch':>9}{'V100':>6}{'times':>7}{'peak MiB':>10}")
    for name in options.corpora:
        corpus = random_corpus(name)
        for label in options.layers:
            for precision in ("float32", "tf32", "bf16"):
                config = paper_trial(name, LAYERS[label], precision)
                seconds, peak_mib = time_trial(config, corpus, options.device, options.steps)
                v100_s = V100_SECONDS_PER_EPOCH[name].get(label)
                published, times = (f"{v100_s:.0f}", f"{v100_s / seconds:.2f}") if v100_s else ("-", "-")
                print(
                    f"{name:<12}{label:<12}{precision:<10}{seconds:>9.1f}{published:>6}{times:>7}{peak_mib:>10.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
