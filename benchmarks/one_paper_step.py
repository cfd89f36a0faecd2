"""The processor's milliseconds a token of training steps at paper shapes, as a line of JSON: a
process of `benchmarks.quick_trials`.

It imports nothing of `benchmarks`, as it runs on the code of whichever checkout PYTHONPATH names.
The words are random, as many as Penn Treebank has: the time of a step does not depend on which."""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch
from pydantic import TypeAdapter

from search_spaces.awd_lstm import awd_lstm
from trainables.config import CorpusConfig, OutputLayerConfig
from trainables.corpora import Corpus
from trainables.runtime import Runtime
from trainables.training import Trainer

VOCABULARY, TOKENS = 10_000, 100_000


def main() -> None:
    """Take the first step, which does not count, and then so many; print them."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "layer", type=TypeAdapter[OutputLayerConfig](OutputLayerConfig).validate_json
    )
    parser.add_argument("seed", type=int)
    parser.add_argument("steps", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = np.random.default_rng(0).integers(VOCABULARY, size=TOKENS)
    words = tuple(map(str, range(VOCABULARY)))
    corpus = Corpus(name="ptb", train=text, valid=text[:1_000], test=text[:1_000], vocabulary=words)
    config = awd_lstm(CorpusConfig(name="ptb", sha256="0" * 64), options.layer, seed=options.seed)
    trainer = Trainer(config, corpus, Runtime(threads=1))
    trainer.step()
    started_s, before = time.process_time(), trainer.progress.tokens
    for _ in range(options.steps):
        trainer.step()
    tokens = trainer.progress.tokens - before
    print(json.dumps({"ms_a_token": 1e3 * (time.process_time() - started_s) / tokens}))


if __name__ == "__main__":
    main()
