"""How far the ranks of a sample of contexts are from those of all, after training at scale quick,
and what each costs.

    python -m benchmarks.rank_sample --corpus ptb --data-dir DIR     trains 14 models, then
    measures: 15 minutes

The sample of N is the first N test contexts, as `rank_contexts` takes them. For the spread, N
consecutive ones from further places of the text stand beside it; for a better sample, N evenly
spaced ones.

Legend: N contexts, V words, C width.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from trainables.config import (
    CorpusConfig,
    GssConfig,
    LmsPlifConfig,
    MosConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    TrialConfig,
)
from trainables.corpora import Corpus, identity, load
from trainables.language_model import LanguageModel
from trainables.measurements import (
    context_vectors,
    log_probability_rows,
    matrix_spectrum,
    rank_report,
    spearman_rho,
    spectrum_stream,
)
from trainables.runtime import Runtime
from trainables.training import Trainer
from trainables.trial_folder import Checkpoints, TrialFolder

MODELS: tuple[tuple[OutputLayerConfig, int], ...] = (
    (SoftmaxConfig(), 1),
    (LmsPlifConfig(), 1),
    (MosConfig(), 1),
    (GssConfig(c=2, k=3), 1),
    (GssConfig(c=-2, k=3), 1),
    (GssConfig(c=-2, k=3), 2),
    (GssConfig(c=0, k=1.25), 1),
    (GssConfig(c=0, k=1.25), 2),
    (GssConfig(c=-1, k=2), 1),
    (GssConfig(c=1, k=2), 1),
    (GssConfig(c=0, k=2.5), 1),
    (GssConfig(c=0, k=2.5), 2),
    (GssConfig(c=-1.5, k=2.5), 1),
    (GssConfig(c=2, k=1.25), 1),
)
SIZES = (512, 1_024, 2_048, 4_096, 8_192, 16_384)
SPREAD_UP_TO = 4_096
"""Larger samples are taken from the start of the text only."""
PLACES = (0.25, 0.5, 0.75)
"""Where in the text the further samples begin, as shares of it."""
RANKS = (
    "press_rank",
    "effective_rank_1e-3",
    "effective_rank_1e-4",
    "effective_rank_1e-5",
    "entropy_rank",
    "stable_rank",
)
Ranks = Mapping[str, float]


@dataclass(frozen=True)
class Samples:
    """The ranks of one model: over all contexts, and by N over the first, over further places and
    evenly spaced."""

    name: str
    whole: Ranks
    first: Mapping[int, Ranks]
    places: Mapping[int, Sequence[Ranks]]
    spaced: Mapping[int, Ranks]


def name_of(layer: OutputLayerConfig, seed: int) -> str:
    """As in the tables."""
    cell = f" ({layer.c:g}, {layer.k:g})" if isinstance(layer, GssConfig) else ""
    return f"{layer.name}{cell}, seed {seed}"


def trained(config: TrialConfig, corpus: Corpus) -> LanguageModel:
    """The model with the weights that its trial would keep."""
    trainer = Trainer(config, corpus, Runtime(checkpoint_every_s=1e9))
    trainer.train(Checkpoints(TrialFolder(Path("/nonexistent"), config.trial_id)), lambda _: None)
    trainer.take_kept_weights()
    return trainer.model


def ranks(log_p_NV: NDArray[np.float32]) -> Ranks:
    """As `spectrum` reports them."""
    report = rank_report(matrix_spectrum(log_p_NV))
    return {name: float(report[name]) for name in RANKS}


def samples_of(name: str, model: LanguageModel, corpus: Corpus, window: int) -> Samples:
    """Read the whole test text once as one stream, then take samples of its contexts."""
    contexts_NC = context_vectors(model, corpus.test, window=window)
    log_p_NV = np.concatenate(list(log_probability_rows(model, contexts_NC)))
    count = len(log_p_NV)
    small = [size for size in SIZES if size <= SPREAD_UP_TO]
    return Samples(
        name=name,
        whole=ranks(log_p_NV),
        first={size: ranks(log_p_NV[:size]) for size in SIZES},
        places={
            size: [ranks(log_p_NV[int(at * count) :][:size]) for at in PLACES] for size in small
        },
        spaced={size: ranks(log_p_NV[np.arange(size) * count // size]) for size in small},
    )


def print_press_ranks(models: Sequence[Samples]) -> None:
    """By model, of the first N contexts and of all."""
    print(f"{'Press rank':<24}{''.join(f'{size:>8,}' for size in SIZES)}{'all':>8}")
    for model in models:
        row = "".join(f"{model.first[size]['press_rank']:>8.0f}" for size in SIZES)
        print(f"{model.name:<24}{row}{model.whole['press_rank']:>8.0f}")


def print_errors(models: Sequence[Samples], metric: str) -> None:
    """By N: mean over models of the ratio to the rank over all contexts, the samples' spread, and
    how the order holds.

    The spread is the standard deviation over the samples of one size of the log of the rank, pooled
    over models; that without the place takes out what a place does to all models alike, since all
    trials of a study have one sample. The order is Spearman's rho over models, the scale Pearson's
    r of the logs, both with the ranks over all contexts."""
    whole = np.array([model.whole[metric] for model in models])
    print(f"\n{metric}\n{'N':>7}{'first/all':>10}{'rho':>7}{'r log':>7}", end="")
    print(f"{'spread':>8}{'no place':>9}{'spaced/all':>11}{'rho':>7}")
    for size in SIZES:
        first = np.array([model.first[size][metric] for model in models])
        r = np.corrcoef(np.log(first), np.log(whole))[0, 1]
        line = (
            f"{size:>7,}{np.mean(first / whole):>10.2f}{spearman_rho(first, whole):>7.3f}{r:>7.3f}"
        )
        if size <= SPREAD_UP_TO:
            spaced = np.array([model.spaced[size][metric] for model in models])
            places = [[ranks_[metric] for ranks_ in model.places[size]] for model in models]
            spread, without_place = spreads(np.log(np.column_stack([first, places])))
            line += f"{spread:>8.1%}{without_place:>9.1%}{np.mean(spaced / whole):>11.2f}"
            line += f"{spearman_rho(spaced, whole):>7.3f}"
        print(line)


def spreads(logs: NDArray[np.float64]) -> tuple[float, float]:
    """Standard deviation over columns (places) within rows (models), and the same without what rows
    have in common."""
    rows, columns = logs.shape
    residuals = logs - logs.mean(axis=1, keepdims=True)
    interaction = residuals - residuals.mean(axis=0)
    within = (residuals**2).sum() / (rows * (columns - 1))
    return float(np.sqrt(within)), float(
        np.sqrt((interaction**2).sum() / ((rows - 1) * (columns - 1)))
    )


def print_costs(model: LanguageModel, tokens: NDArray[np.int64], window: int) -> None:
    """The processor's seconds of each step, the least of three."""
    print(f"\n{'N':>7}{'contexts':>10}{'log P':>10}{'Gram':>10}{'eigenvalues':>13}{'in all':>10}")
    for size in SIZES:
        runs = np.array([seconds_of_steps(model, tokens[:size], window) for _ in range(3)]).min(
            axis=0
        )
        print(
            f"{size:>7,}{runs[0]:>10.2f}{runs[1]:>10.2f}{runs[2]:>10.2f}{runs[3]:>13.2f}{runs.sum():>10.2f}"
        )


def seconds_of_steps(model: LanguageModel, tokens: NDArray[np.int64], window: int) -> list[float]:
    """Of the context vectors, log P, the Gram matrix and its eigenvalues."""
    marks = [time.process_time()]
    contexts_NC = context_vectors(model, tokens, window=window)
    marks.append(time.process_time())
    log_p_NV = np.concatenate(list(log_probability_rows(model, contexts_NC)))
    marks.append(time.process_time())
    narrow = log_p_NV if len(log_p_NV) >= log_p_NV.shape[1] else log_p_NV.T
    stream = spectrum_stream("gram", narrow.shape[1])
    stream.update(narrow)
    marks.append(time.process_time())
    stream.finish()
    marks.append(time.process_time())
    return [end - start for start, end in pairwise(marks)]


def main() -> None:
    """Train, then print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="ptb")
    parser.add_argument("--data-dir", type=Path, help="where corpora lie; default: data/")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = CorpusConfig(
        name=options.corpus, sha256=identity(options.corpus, data_dir=options.data_dir).sha256
    )
    models: list[Samples] = []
    for layer, seed in MODELS:
        config = apply_scale(SCALES["quick"], awd_lstm(text, layer, seed=seed))
        assert isinstance(config, TrialConfig)
        corpus = load(config.corpus, data_dir=options.data_dir)
        model, window = trained(config, corpus), config.evaluation.window
        if not models:
            print_costs(model, corpus.test, window)
        models.append(samples_of(name_of(layer, seed), model, corpus, window))
    print_press_ranks(models)
    for metric in RANKS:
        print_errors(models, metric)


if __name__ == "__main__":
    main()
