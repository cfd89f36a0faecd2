"""How many trials are trained as one, by the memory that there is: held against what a stack really takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from orchestrator.plan.estimates import GPU_SHARE, stack_size
from search_spaces.awd_lstm import awd_lstm
from trainables.config import CorpusConfig, SoftmaxConfig, chunk_rows

VOCABULARY = 4_000
PROGRAM = """
import sys
import numpy as np
from search_spaces.awd_lstm import awd_lstm
from trainables.config import CorpusConfig, SoftmaxConfig
from trainables.corpora import Corpus
from trainables.runtime import Runtime
from trainables.stack import Stack
from trainables.training import Trainer

vocabulary = %d
text = np.random.default_rng(0).integers(vocabulary, size=40_000)
words = tuple(map(str, range(vocabulary)))
corpus = Corpus(name="x", train=text, valid=text[:1_000], test=text[:1_000], vocabulary=words)
config = awd_lstm(CorpusConfig(name="x", sha256="0" * 64), SoftmaxConfig())
width = {"embedding_width": 200, "context_width": 200, "hidden_width": 600}
config = config.model_copy(update={"model": config.model.model_copy(update=width)})
stack = Stack([Trainer(config, corpus, Runtime()) for _ in range(int(sys.argv[1]))])
for _ in range(4):
    stack.step()
# The peak of this process; getrusage gives its parent's where that was greater.
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024)
"""


def peak_bytes(trials: int) -> int:
    program = PROGRAM % VOCABULARY
    command = [sys.executable, "-c", program, str(trials)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_what_is_planned_for_a_trial_is_what_it_takes_and_not_much_more() -> None:
    """On a CPU, where allocations can be counted without a GPU; the planned window is the longest, and average, kept
    copy and what a captured step holds besides are counted in, which these few steps do not have."""
    taken = (peak_bytes(7) - peak_bytes(1)) / 6
    config = awd_lstm(CorpusConfig(name="x", sha256="0" * 64), SoftmaxConfig())
    width = {"embedding_width": 200, "context_width": 200, "hidden_width": 600}
    config = config.model_copy(update={"model": config.model.model_copy(update=width)})
    chunk = 6 * 4 * chunk_rows(VOCABULARY, 200, 4, "cuda") * VOCABULARY
    size = stack_size([config], VOCABULARY, 20e9)
    planned = (GPU_SHARE * 20e9 - chunk) / size
    assert taken <= planned <= 5 * taken


@pytest.mark.parametrize(("gigabytes", "least", "most"), [(1, 1, 1), (24, 8, 30), (139, 16, 200)])
def test_paper_shapes_fill_a_gpu_by_its_memory(gigabytes: int, least: int, most: int) -> None:
    config = awd_lstm(CorpusConfig(name="ptb", sha256="0" * 64), SoftmaxConfig())
    assert least <= stack_size([config], 10_000, gigabytes * 2**30) <= most
