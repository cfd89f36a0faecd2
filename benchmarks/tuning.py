"""TPE against random search at the same budget: `python -m benchmarks.tuning --table FILE`.

Trains every one of the 2,940 cells of stage 2 of the study `fair_capacity` once (side softmax_dagger, scale smoke,
corpus pydocs, one seed; minutes), keeps the validation losses in FILE, and lets both methods search in this table, with
the study's successive halving and without, ten times each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.plan import make_plan, scale_named
from orchestrator.tuning.halving import thresholds
from orchestrator.tuning.suggest import Method, Tried, suggest
from search_spaces.catalog import load_study
from search_spaces.fair_capacity import TUNING
from search_spaces.tuning import Cell, cells
from trainables.config import TrialConfig
from trainables.files import write_file

SIDE = "softmax_dagger"
BUDGETS = (6, 30, 60, 120)
REPEATS = 10
Losses = Mapping[int, float]


def losses_of(cell: Cell) -> dict[int, float]:
    """Train the cell; its validation loss in nats per token by epoch."""
    import torch

    from trainables.corpora import load
    from trainables.runtime import Runtime
    from trainables.training.checkpoint import Checkpoints
    from trainables.training.loop import Trainer

    torch.set_num_threads(1)
    plan = make_plan(load_study("fair_capacity"), scale_named("smoke"), "pydocs", None, {}).tuning
    assert plan is not None, "the study tunes"
    config = TrialConfig.model_validate(plan.searched(SIDE, 1, cell).config)
    trainer = Trainer(config, load(config.corpus, data_dir=None), Runtime(checkpoint_every_s=1e9))
    trainer.train(Checkpoints(Path("/nonexistent"), config.trial_id), lambda _: None)
    return {epoch.epoch: epoch.valid_loss for epoch in trainer.progress.epochs}


def make_table(processes: int) -> dict[Cell, Losses]:
    """The whole surface."""
    every = list(cells(TUNING.stage2))
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return dict(zip(every, pool.imap(losses_of, every, chunksize=20), strict=True))


def read_table(path: Path, processes: int) -> dict[Cell, Losses]:
    """The surface from the file, made first where there is none."""
    if not path.exists():
        start_s = time.monotonic()
        rows = [[cell, list(losses.values())] for cell, losses in make_table(processes).items()]
        write_file(path, json.dumps(rows).encode())
        print(f"Trained {len(rows):,} cells in {time.monotonic() - start_s:.0f} s on {processes} processes.")
    return {tuple(cell): dict(enumerate(losses, start=1)) for cell, losses in json.loads(path.read_bytes())}


def best_by_budget(table: Mapping[Cell, Losses], method: Method, seed: int, *, halving: bool) -> list[float]:
    """The least loss of the trials that ran to their end, after each budget; and the epochs trained by then, last."""
    history: list[Tried] = []
    best: list[float] = []
    for _ in range(max(BUDGETS)):
        cell = suggest(TUNING.stage2, method=method, seed=seed, history=history)
        assert cell is not None, "there are more cells than the largest budget"
        losses = table[cell]
        above = thresholds(len(losses), [tried.losses for tried in history]) if halving else {}
        stop = next((epoch for epoch in losses if losses[epoch] > above.get(epoch, float("inf"))), None)
        seen = {epoch: loss for epoch, loss in losses.items() if stop is None or epoch <= stop}
        history.append(Tried(cell=cell, ending="done" if stop is None else "pruned", losses=seen))
        done = [min(tried.losses.values()) for tried in history if tried.ending == "done"]
        best.append(min(done))
    return best


def compare(table: Mapping[Cell, Losses], *, halving: bool) -> None:
    """Print a line for each budget."""
    lows = {
        method: [best_by_budget(table, method, seed, halving=halving) for seed in range(REPEATS)]
        for method in ("tpe", "random")
    }
    finals = sorted(min(losses.values()) for losses in table.values())
    for budget in BUDGETS:
        tpe, chance = ([low[budget - 1] for low in lows[method]] for method in ("tpe", "random"))
        print(
            f"budget {budget:3}, {'with' if halving else 'without'} halving: "
            f"TPE {_shown(tpe, finals)}, random {_shown(chance, finals)}: "
            f"TPE is {'better' if statistics.mean(tpe) < statistics.mean(chance) else 'not better'} "
            f"(in {sum(a < b for a, b in itertools.product(tpe, chance))} of {REPEATS**2} pairs)"
        )


def _shown(lows: Sequence[float], finals: Sequence[float]) -> str:
    beaten_by = statistics.mean(sum(final < low for final in finals) for low in lows)
    return f"{statistics.mean(lows):.5f} ± {statistics.stdev(lows):.5f} (mean place {beaten_by + 1:.0f})"


def main() -> None:
    """Make or read the table, then search in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, required=True, help="where the surface is, or is to be, kept")
    parser.add_argument("--processes", type=int, default=2, help="for training it; default: 2")
    options = parser.parse_args()
    table = read_table(options.table, options.processes)
    finals = sorted(min(losses.values()) for losses in table.values())
    print(
        f"Surface of {len(table):,} cells: least loss {finals[0]:.5f}, median {statistics.median(finals):.5f}, "
        f"greatest {finals[-1]:.5f} nats per token; mean of the best over {REPEATS} repeats, ± standard deviation:"
    )
    for halving in (False, True):
        compare(table, halving=halving)


if __name__ == "__main__":
    main()
