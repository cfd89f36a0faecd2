"""CPU seconds of one trial at scale quick, and the cost of a resume.

    python -m benchmarks.one_trial softmax gss lms_plif mos [--corpus ptb --data-dir DIR]

A trial trains, validates, tests and measures the spectrum. The second number is for a trial
that is stopped half-way and run again; the difference is the cost of a resume.
"""

from __future__ import annotations

import argparse
import math
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from gpu_proof.trials import LAYERS, layer_config
from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from trainables.config import AnyConfig, CorpusConfig
from trainables.corpora import identity
from trainables.runtime import Runtime
from trainables.trial import run_trial
from trainables.trial_folder import Epoch


class StoppedError(Exception):
    """Raised to end a trial half-way."""


def stop_half_way(epoch: Epoch) -> None:
    if epoch.epoch == 4:  # of eight
        raise StoppedError


def seconds_of(
    config: AnyConfig, folder: str, runtime: Runtime, *, stops: bool = False
) -> tuple[float, float]:
    start, perplexity = time.process_time(), math.nan
    on_epoch = stop_half_way if stops else lambda _: None
    with suppress(StoppedError):
        outcome = run_trial(config, directory=Path(folder), runtime=runtime, on_epoch=on_epoch)
        perplexity = float(outcome.metrics["test_perplexity"])
    return time.process_time() - start, perplexity


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("layers", nargs="+", choices=LAYERS)
    parser.add_argument("--corpus", default="pydocs")
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    sha256 = identity(options.corpus, data_dir=options.data_dir).sha256
    runtime = Runtime(threads=1, data_dir=options.data_dir, checkpoint_every_s=1.0)
    print(
        f"{'layer':<16}{'trial, s':>10}{'resumed, s':>12}{'trials/core-hour':>18}{'perplexity':>12}"
    )
    for name in options.layers:
        text = CorpusConfig(name=options.corpus, sha256=sha256)
        config = awd_lstm(text, layer_config(name, "ptb"))
        smoke, quick = (apply_scale(SCALES[scale], config) for scale in ("smoke", "quick"))
        with (
            TemporaryDirectory() as warm_up,
            TemporaryDirectory() as undisturbed,
            TemporaryDirectory() as resumed,
        ):
            seconds_of(smoke, warm_up, runtime)
            seconds, perplexity = seconds_of(quick, undisturbed, runtime)
            resumed_s = seconds_of(quick, resumed, runtime, stops=True)[0]
            resumed_s += seconds_of(quick, resumed, runtime)[0]
        print(
            f"{name:<16}{seconds:>10.1f}{resumed_s:>12.1f}{3600 / seconds:>18.0f}"
            f"{perplexity:>12.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
