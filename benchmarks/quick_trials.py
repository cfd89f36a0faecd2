"""Trials at scale quick a core-hour, and steps at paper shapes, of a checkout of the code before
and of this one.

    git worktree add BEFORE COMMIT
    python -m benchmarks.quick_trials BEFORE --corpus ptb --data-dir DIR

The two take turns. A trial is trained, validated and measured (perplexity, spectrum) by one thread
in a process of its own, which runs one at scale smoke first. Its seconds are the processor's; those
of imports and of the smoke trial stand apart (start), since a worker pays them once for all its
trials. Steps of gss at paper shapes are by one thread, too. A ratio is before over after, in the
median: at least 1.00 where nothing was lost."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainables.config import GssConfig, LmsPlifConfig, MosConfig, OutputLayerConfig, SoftmaxConfig

LAYERS: dict[str, OutputLayerConfig] = {
    "softmax": SoftmaxConfig(),
    "gss": GssConfig(c=-1.5, k=2.5),
    "lms_plif": LmsPlifConfig(),
    "mos": MosConfig(),
}
TRIAL, STEP = (
    Path(__file__).with_name(f"{name}.py") for name in ("one_quick_trial", "one_paper_step")
)
STEPS = 3
"""At paper shapes, in a process."""


@dataclass(frozen=True, kw_only=True)
class QuickTrial:
    """Processor seconds until a process is ready and of its trial, and the test perplexity."""

    start_s: float
    trial_s: float
    perplexity: float


def run(checkout: Path, script: Path, arguments: list[str]) -> dict[str, float]:
    """What the script prints on the code of the checkout. Raises CalledProcessError where it fails;
    its own words are on the terminal."""
    command = [sys.executable, "-P", str(script), *arguments]
    environment = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    output = subprocess.run(
        command, cwd=checkout, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    figures: dict[str, float] = json.loads(output.stdout.splitlines()[-1])
    return figures


def row(name: str, code: str, trials: list[QuickTrial]) -> str:
    """A line of the table: medians, and the range of the seconds and of the perplexities over the
    seeds."""
    seconds = [trial.trial_s for trial in trials]
    median_s = statistics.median(seconds)
    perplexities = [trial.perplexity for trial in trials]
    return (
        f"{name:<10}{code:<8}{median_s:>10.1f}{f'{min(seconds):.1f}..{max(seconds):.1f}':>16}{3600 / median_s:>12.0f}"
        f"{f'{min(perplexities):.1f}..{max(perplexities):.1f}':>16}"
        f"{statistics.median(trial.start_s for trial in trials):>9.1f}"
    )


def in_turns(checkouts: dict[str, Path], seeds: int) -> Iterator[tuple[int, str, Path]]:
    """Every seed on both codes, which take turns in being first."""
    for seed in range(1, seeds + 1):
        order = list(checkouts.items())
        yield from (
            (seed, code, checkout) for code, checkout in (order if seed % 2 else reversed(order))
        )


def compare_trials(checkouts: dict[str, Path], name: str, seeds: int, text: list[str]) -> None:
    """Print the lines of a layer."""
    trials: dict[str, list[QuickTrial]] = {code: [] for code in checkouts}
    for seed, code, checkout in in_turns(checkouts, seeds):
        trials[code].append(
            QuickTrial(**run(checkout, TRIAL, [LAYERS[name].model_dump_json(), str(seed), *text]))
        )
    for code in checkouts:
        print(row(name, code, trials[code]))
    print(
        f"{name:<10}ratio "
        f"{ratio(*([trial.trial_s for trial in of_code] for of_code in trials.values())):.3f}",
        flush=True,
    )


def compare_steps(checkouts: dict[str, Path], pairs: int) -> None:
    """Print the lines of gss at paper shapes."""
    paces: dict[str, list[float]] = {code: [] for code in checkouts}
    for seed, code, checkout in in_turns(checkouts, pairs):
        arguments = [LAYERS["gss"].model_dump_json(), str(seed), str(STEPS)]
        paces[code].append(run(checkout, STEP, arguments)["ms_a_token"])
    for code, ms in paces.items():
        print(
            f"steps     {code:<8}{statistics.median(ms):.3f} ms a token, from {min(ms):.3f} to "
            f"{max(ms):.3f}"
        )
    print(f"steps     ratio {ratio(*paces.values()):.3f}", flush=True)


def ratio(before: list[float], after: list[float]) -> float:
    """Of the medians."""
    return statistics.median(before) / statistics.median(after)


def main() -> None:
    """Print lines for each layer and code, and for steps."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="a checkout of the code before")
    parser.add_argument("--corpus", default="ptb")
    parser.add_argument("--data-dir", type=Path, help="where corpora lie; default: data/")
    parser.add_argument("--layers", nargs="*", choices=tuple(LAYERS), default=tuple(LAYERS))
    parser.add_argument(
        "--seeds", type=int, default=2, help="trials of each layer and code; default: 2"
    )
    parser.add_argument(
        "--pairs", type=int, default=7, help="of processes with steps at paper shapes; default: 7"
    )
    options = parser.parse_args()
    text = [options.corpus]
    if options.data_dir is not None:
        text += ["--data-dir", str(options.data_dir.resolve())]
    checkouts = {"before": options.before.resolve(), "after": Path(__file__).resolve().parents[1]}
    print(f"{'layer':<10}{'code':<8}{'trial, s':>10}{'min..max s':>16}", end="")
    print(f"{'a core-hour':>12}{'perplexity':>16}{'start, s':>9}")
    for name in options.layers:
        compare_trials(checkouts, name, options.seeds, text)
    if options.pairs:
        compare_steps(checkouts, options.pairs)


if __name__ == "__main__":
    main()
