"""Error rates and power of the verdicts of `compare`, by simulation of trials with known effects.

    python -m benchmarks.verdicts --draws 4000

Differences of pairs are normal with standard deviation 1 and mean `effect`, on top of a common seed
effect of standard deviation 3. `until settled` looks after 5, 8, 12, 18 ... pairs, as the command
does. Nominal: 2.5% for each "better" at effect 0, and 5% for "equivalent" at effect = margin.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from orchestrator.analysis import judge_pairs
from orchestrator.sweep import looks

SEEDS = (5, 10, 30)
MOST = 100
MARGIN = 1.0
EFFECTS = (0.0, 0.5, MARGIN, 2.0)
COMMON_SD = 3.0
VERDICTS = ("a_better", "b_better", "equivalent", "no_difference_shown")


def verdict(pairs: np.ndarray, *, margin: float, sequential: bool) -> tuple[str, int]:
    """Return the verdict on simulated pairs and the number of pairs that were looked at."""
    for count in looks(len(pairs)) if sequential else (len(pairs),):
        result = judge_pairs(pairs[:count], margin=margin, sequential=sequential)
        if result.verdict not in ("no_difference_shown", "too_few_seeds"):
            return result.verdict, count
    return result.verdict, count


def rates(draws: int) -> Iterator[dict[str, float | str]]:
    """Yield the share of each verdict by effect, margin and number of seeds."""
    rng = np.random.default_rng(0)
    for effect in EFFECTS:
        for margin in (0.0, MARGIN):
            for seeds in (*SEEDS, MOST):
                outcomes = []
                for _ in range(draws):
                    common_N = rng.normal(scale=COMMON_SD, size=seeds)
                    a_N = common_N + effect + rng.normal(scale=math.sqrt(0.5), size=seeds)
                    b_N = common_N + rng.normal(scale=math.sqrt(0.5), size=seeds)
                    pairs = np.column_stack([a_N, b_N])
                    outcomes.append(verdict(pairs, margin=margin, sequential=seeds == MOST))
                counts = Counter(name for name, _ in outcomes)
                yield {
                    "effect": effect,
                    "margin": margin,
                    "seeds": f"until settled, {MOST}" if seeds == MOST else str(seeds),
                    **{name: counts[name] / draws for name in VERDICTS},
                    "mean seeds": float(np.mean([count for _, count in outcomes])),
                }


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4000)
    header = ("effect", "margin", "seeds", *VERDICTS, "mean seeds")
    print(f"| {' | '.join(header)} |\n|{' --- |' * len(header)}")
    for row in rates(parser.parse_args().draws):
        cells = [f"{row[name]:.3f}" if name in VERDICTS else row[name] for name in header[:-1]]
        print(f"| {' | '.join(map(str, cells))} | {row['mean seeds']:.1f} |", flush=True)


if __name__ == "__main__":
    main()
