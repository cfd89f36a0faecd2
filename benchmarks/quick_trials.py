"""Trials at scale quick a core-hour, of a checkout of the code before and of this one, in turns.

    git worktree add BEFORE COMMIT
    python -m benchmarks.quick_trials BEFORE --corpus ptb --data-dir DIR

A trial is trained, validated and measured (perplexity, spectrum) by one thread in a process of its own, which runs one
at scale smoke first. Its seconds are the processor's; those of imports and of the smoke trial stand apart (start),
since a worker pays them once for all its trials.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from trainables.config import GssConfig, LmsPlifConfig, MosConfig, OutputLayerConfig, SoftmaxConfig

LAYERS: dict[str, OutputLayerConfig] = {
    "softmax": SoftmaxConfig(),
    "gss": GssConfig(c=-1.5, k=2.5),
    "lms_plif": LmsPlifConfig(),
    "mos": MosConfig(),
}
SCRIPT = Path(__file__).with_name("one_quick_trial.py")


@dataclass(frozen=True, kw_only=True)
class QuickTrial:
    """Processor seconds until a process is ready and of its trial, and the test perplexity."""

    start_s: float
    trial_s: float
    perplexity: float


def run(checkout: Path, layer: OutputLayerConfig, seed: int, text: list[str]) -> QuickTrial:
    """One trial on the code of the checkout. Raises CalledProcessError where it fails; its own words are on the
    terminal."""
    command = [sys.executable, "-P", str(SCRIPT), layer.model_dump_json(), str(seed), *text]
    environment = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    output = subprocess.run(command, cwd=checkout, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return QuickTrial(**json.loads(output.stdout.splitlines()[-1]))


def row(name: str, code: str, trials: list[QuickTrial]) -> str:
    """A line of the table: medians, and the range of the seconds and of the perplexities over the seeds."""
    seconds = [trial.trial_s for trial in trials]
    median_s = statistics.median(seconds)
    perplexities = [trial.perplexity for trial in trials]
    return (
        f"{name:<10}{code:<8}{median_s:>10.1f}{f'{min(seconds):.1f}..{max(seconds):.1f}':>16}{3600 / median_s:>12.0f}"
        f"{f'{min(perplexities):.1f}..{max(perplexities):.1f}':>16}"
        f"{statistics.median(trial.start_s for trial in trials):>9.1f}"
    )


def main() -> None:
    """Print a line for each layer and code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of the code before")
    parser.add_argument("--corpus", default="ptb")
    parser.add_argument("--data-dir", type=Path, help="where corpora lie; default: data/")
    parser.add_argument("--layers", nargs="+", choices=tuple(LAYERS), default=tuple(LAYERS))
    parser.add_argument("--seeds", type=int, default=2, help="trials of each layer and code; default: 2")
    options = parser.parse_args()
    text = [options.corpus]
    if options.data_dir is not None:
        text += ["--data-dir", str(options.data_dir.resolve())]
    checkouts = {"before": options.before.resolve(), "after": Path(__file__).resolve().parents[1]}
    print(f"{'layer':<10}{'code':<8}{'trial, s':>10}{'min..max s':>16}", end="")
    print(f"{'a core-hour':>12}{'perplexity':>16}{'start, s':>9}")
    for name in options.layers:
        trials: dict[str, list[QuickTrial]] = {code: [] for code in checkouts}
        for seed in range(1, options.seeds + 1):
            for code, checkout in checkouts.items():
                trials[code].append(run(checkout, LAYERS[name], seed, text))
        for code in checkouts:
            print(row(name, code, trials[code]), flush=True)


if __name__ == "__main__":
    main()
