"""The processor's seconds of one whole trial at scale quick, as a line of JSON: a process of
`benchmarks.quick_trials`.

It imports nothing of `benchmarks`, as it runs on the code of whichever checkout PYTHONPATH names.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from pydantic import TypeAdapter

from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from trainables.config import CorpusConfig, OutputLayerConfig, TrialConfig
from trainables.corpora import identity
from trainables.runtime import Runtime
from trainables.trial import run_trial


def seconds_and_perplexity(
    scale: str, config: TrialConfig, runtime: Runtime
) -> tuple[float, float]:
    """The processor's seconds of the trial at this scale to the written result, and the test
    perplexity."""
    with tempfile.TemporaryDirectory() as directory:
        start = time.process_time()
        outcome = run_trial(
            apply_scale(SCALES[scale], config), directory=Path(directory), runtime=runtime
        )
        return time.process_time() - start, float(outcome.metrics["test_perplexity"])


def main() -> None:
    """Train and measure a smoke trial, then the quick one; print both."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "layer", type=TypeAdapter[OutputLayerConfig](OutputLayerConfig).validate_json
    )
    parser.add_argument("seed", type=int)
    parser.add_argument("corpus")
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    runtime = Runtime(threads=1, data_dir=options.data_dir)
    text = CorpusConfig(
        name=options.corpus, sha256=identity(options.corpus, data_dir=options.data_dir).sha256
    )
    config = awd_lstm(text, options.layer, seed=options.seed)
    seconds_and_perplexity("smoke", config, runtime)
    started_s = time.process_time()
    trial_s, perplexity = seconds_and_perplexity("quick", config, runtime)
    print(json.dumps({"start_s": started_s, "trial_s": trial_s, "perplexity": perplexity}))


if __name__ == "__main__":
    main()
