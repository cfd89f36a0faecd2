from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from search_spaces.awd_lstm import awd_lstm
from search_spaces.transformer import transformer
from tests.support.smoke_trials import smoke_trial
from trainables.config import (
    CorpusConfig,
    LanguageTrialConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
    TrialConfig,
)
from trainables.runtime import Runtime
from trainables.stack import chosen_size, stack_bytes

VOCABULARY = 2_000
PROGRAM = """
import gc, sys
import numpy as np
from tests.trainables.stack.test_choice import CONFIGS, VOCABULARY
from trainables.corpora import Corpus
from trainables.measurements import status_mib
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
    print(status_mib("VmHWM"))
"""


def lstm() -> TrialConfig:
    paper = awd_lstm(CorpusConfig(name="x", sha256="0" * 64), SoftmaxConfig())
    widths = {"embedding_width": 100, "context_width": 100, "hidden_width": 300}
    model = paper.model.model_copy(update={**widths, "head_rank": 25})
    return paper.model_copy(update={"model": model}).with_values({"training.bptt": 20})


def small_transformer() -> TransformerTrialConfig:
    config = transformer(CorpusConfig(name="x", sha256="0" * 64), SoftmaxConfig(), width=128)
    return config.with_values({"training.window": 64})


CONFIGS: dict[str, Callable[[], LanguageTrialConfig]] = {
    "lstm": lstm,
    "transformer": small_transformer,
}


@pytest.mark.parametrize("name", CONFIGS)
def test_planned_memory_matches_the_stack(name: str) -> None:
    command, config = [sys.executable, "-c", PROGRAM, name], CONFIGS[name]()
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    one, four = map(float, run.stdout.split())
    taken = (four - one) * 2**20 / 3
    planned = stack_bytes(config, VOCABULARY, 2) - stack_bytes(config, VOCABULARY, 1)
    assert taken <= 0.8 * planned <= 4 * taken


@pytest.mark.parametrize(
    ("free_bytes", "limit", "size"), [(80 * 2**30, 16, 3), (80 * 2**30, 2, 2), (1e6, 16, 1)]
)
def test_chosen_size(free_bytes: float, limit: int, size: int) -> None:
    chosen, clause = chosen_size([smoke_trial()] * 3, Runtime(), limit, free_bytes)
    assert chosen == size and f"{free_bytes / 2**30:.1f} GiB" in clause
