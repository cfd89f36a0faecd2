"""Which trials of `benchmarks/every_layer.py` learn: the table of all of them, none left out.

    python -m benchmarks.who_learns results/results.db [--corpus ptb]

A trial learns if it ends below 130 test perplexity and its validation perplexity falls below 190
(that of plain word frequencies is 198) within the first third of its epochs."""

from __future__ import annotations

import argparse
import math
import statistics
from pathlib import Path

from orchestrator.store import StudyKey, open_store
from search_spaces.study import group_of

MOST_PERPLEXITY, PLATEAU = 130.0, 190.0


def main() -> None:
    """Print a line for each group of seeds; exit with status 1 where a trial did not learn."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("--corpus", default="ptb")
    options = parser.parse_args()
    key = StudyKey(study="every_layer", scale="quick", corpus=options.corpus)
    with open_store(str(options.store)) as store:
        results, epochs = store.results(key), store.epochs_by_trial(key)
    learned = {}
    table: dict[str, list[tuple[dict[str, float], int]]] = {}
    for row in results:
        trial_epochs = epochs.get(row["trial_id"], [])
        below = (epoch.epoch for epoch in trial_epochs if math.exp(epoch.valid_loss) < PLATEAU)
        left_in = next(below, len(trial_epochs) + 1)
        if row["state"] == "done":
            table.setdefault(group_of(row["name"]), []).append((row["metrics"], left_in))
        good = row["state"] == "done" and row["metrics"]["test_perplexity"] < MOST_PERPLEXITY
        learned[row["name"]] = good and 3 * left_in <= len(trial_epochs)
    print(
        f"{'group':<20}{'test perplexity':>26}{'sd':>6}{'Press rank':>18}{'left the plateau in epoch':>28}{'s':>8}"
    )
    for group, measured in table.items():
        metrics = [values for values, _ in measured]
        perplexities = [values["test_perplexity"] for values in metrics]
        spread = statistics.stdev(perplexities) if len(perplexities) > 1 else math.nan
        print(
            f"{group:<20}{' '.join(f'{value:.1f}' for value in perplexities):>26}{spread:>6.1f}"
            f"{' '.join(str(values['press_rank']) for values in metrics):>18}"
            f"{' '.join(str(left_in) for _, left_in in measured):>28}"
            f"{statistics.mean(values['seconds'] for values in metrics):>8.1f}"
        )
    lost = [name for name, good in learned.items() if not good]
    print(
        f"{len(learned)} trials, {len(lost)} did not learn{': ' if lost else ''}{', '.join(lost)}"
    )
    raise SystemExit(bool(lost))


if __name__ == "__main__":
    main()
