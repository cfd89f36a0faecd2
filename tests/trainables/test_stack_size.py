"""How many trials are trained as one, by the memory that there is: compared with what a stack
takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from search_spaces.awd_lstm import awd_lstm
from search_spaces.transformer import transformer
from trainables.config import (
    CorpusConfig,
    LanguageTrialConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
    TrialConfig,
)
from trainables.parameters import stack_bytes, stack_size

VOCABULARY = 4_000
PROGRAM = """
import gc, sys
import numpy as np
from tests.trainables.test_stack_size import CONFIGS, VOCABULARY
from trainables.corpora import Corpus
from trainables.runtime import Runtime
from trainables.stack import Stack
from trainables.training import MAX_EXTRA, Trainer, lstm

lstm.draw_window = lambda bptt, _: bptt + MAX_EXTRA
text = np.random.default_rng(0).integers(VOCABULARY, size=40_000)
words = tuple(map(str, range(VOCABULARY)))
corpus = Corpus(name="x", train=text, valid=text[:1_000], test=text[:1_000], vocabulary=words)
config = CONFIGS[sys.argv[1]]()
for trials in (1, 4):
    stack = Stack([Trainer(config, corpus, Runtime()) for _ in range(trials)])
    for _ in range(2):
        stack.step()
    del stack
    gc.collect()
    # The peak of this process; getrusage gives its parent's where that was greater.
    with open("/proc/self/status") as status:
        print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024)
"""


def lstm() -> TrialConfig:
    """Half as wide as the paper's, and with shorter windows."""
    paper = awd_lstm(CorpusConfig(name="x", sha256="0" * 64), SoftmaxConfig())
    widths = {"embedding_width": 200, "context_width": 200, "hidden_width": 600}
    model, training = (
        paper.model.model_copy(update=widths),
        paper.training.model_copy(update={"bptt": 20}),
    )
    return paper.model_copy(update={"model": model, "training": training})


def lstm_with_a_head() -> TrialConfig:
    """Of rank 50."""
    config = lstm()
    return config.model_copy(update={"model": config.model.model_copy(update={"head_rank": 50})})


def small_transformer() -> TransformerTrialConfig:
    """Half as wide as that of the recipe, and with shorter windows."""
    config = transformer(CorpusConfig(name="x", sha256="0" * 64), SoftmaxConfig(), width=256)
    return config.model_copy(update={"training": config.training.model_copy(update={"window": 64})})


CONFIGS: dict[str, Callable[[], LanguageTrialConfig]] = {
    "lstm": lstm,
    "head": lstm_with_a_head,
    "transformer": small_transformer,
}


def peaks_bytes(name: str) -> tuple[int, int]:
    """Of one trial, and of four after it."""
    command = [sys.executable, "-c", PROGRAM, name]
    one, four = map(
        int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    )
    return one, four


@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_planned_for_a_trial_is_what_it_takes_and_not_much_more(name: str) -> None:
    """On a CPU, where allocations can be counted without a GPU, in windows as long as any; average,
    kept copy and what a captured step holds besides are planned, too, which these few steps do not
    have."""
    (one, four), config = peaks_bytes(name), CONFIGS[name]()
    taken = (four - one) / 3
    planned = stack_bytes(config, VOCABULARY, 2) - stack_bytes(config, VOCABULARY, 1)
    assert taken <= 0.8 * planned <= 4 * taken


def test_planned_bytes_are_enough_for_the_trials() -> None:
    config = lstm()
    for trials in (1, 2, 7):
        needed = stack_bytes(config, VOCABULARY, trials)
        assert stack_size([config], VOCABULARY, needed * 1.0001) == trials
        assert stack_size([config], VOCABULARY, needed * 0.999) == max(1, trials - 1)


@pytest.mark.parametrize(("gigabytes", "least", "most"), [(1, 1, 1), (24, 8, 30), (139, 16, 200)])
def test_paper_shapes_fill_a_gpu_by_its_memory(gigabytes: int, least: int, most: int) -> None:
    config = awd_lstm(CorpusConfig(name="ptb", sha256="0" * 64), SoftmaxConfig())
    assert least <= stack_size([config], 10_000, gigabytes * 2**30) <= most
