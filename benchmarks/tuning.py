"""TPE against random search at the same budget: `python -m benchmarks.tuning --table FILE`.

Trains every one of the 2,940 cells of stage 2 of the study `fair_capacity` once (side
softmax_dagger, scale smoke, corpus pydocs, one seed; minutes), keeps the validation losses in FILE,
and lets both methods search in this table, with the study's successive halving and without, ten
times each. `--only de dh noise` keeps the middle choice of all other dimensions, and `--epochs`
trains longer: for another surface, another FILE."""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from orchestrator.plan import (
    Method,
    PlanRequest,
    Tried,
    make_plan,
    scale_named,
    suggest,
    thresholds,
)
from search_spaces.fair_capacity import STUDY, TUNING
from search_spaces.tuning import Cell, Space, cells
from trainables.config import TrialConfig
from trainables.trial_folder import TrialFolder, write_file

SIDE = "softmax_dagger"
BUDGETS = (6, 30, 60, 120)
REPEATS = 10
Losses = Mapping[int, float]


def reduced(only: Sequence[str] | None) -> Space:
    """Stage 2 with just the middle choice of dimensions that are not among these (by their short
    names)."""
    return tuple(
        d if only is None or d.short in only else replace(d, values=(d.values[len(d.values) // 2],))
        for d in TUNING.stage2
    )


def losses_of(cell: Cell, space: Space, epochs: int | None) -> dict[int, float]:
    """Train the cell; its validation loss in nats per token by epoch."""
    import torch

    from trainables.corpora import load
    from trainables.runtime import Runtime
    from trainables.training import Trainer
    from trainables.trial_folder import Checkpoints

    torch.set_num_threads(1)
    study = replace(STUDY, tuning=replace(TUNING, stage2=space))
    longer = {} if epochs is None else {"training.epochs": epochs}
    plan = make_plan(study, scale_named("smoke"), "pydocs", PlanRequest(overrides=longer)).tuning
    assert plan is not None, "the study tunes"
    config = TrialConfig.model_validate(plan.searched(SIDE, 1, cell).config)
    trainer = Trainer(config, load(config.corpus, data_dir=None), Runtime(checkpoint_every_s=1e9))
    trainer.train(Checkpoints(TrialFolder(Path("/nonexistent"), config.trial_id)), lambda _: None)
    return {epoch.epoch: epoch.valid_loss for epoch in trainer.progress.epochs}


def read_table(path: Path, space: Space, epochs: int | None, processes: int) -> dict[Cell, Losses]:
    """The surface from the file, made first where there is none."""
    if not path.exists():
        start_s = time.monotonic()
        every = list(cells(space))
        train = partial(losses_of, space=space, epochs=epochs)
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            found = pool.map(train, every, chunksize=5)
        rows = [[cell, list(losses.values())] for cell, losses in zip(every, found, strict=True)]
        write_file(path, json.dumps(rows).encode())
        print(
            f"Trained {len(rows):,} cells in {time.monotonic() - start_s:.0f} s on {processes} "
            f"processes."
        )
    table: dict[Cell, Losses] = {
        tuple(cell): dict(enumerate(losses, start=1))
        for cell, losses in json.loads(path.read_bytes())
    }
    if set(table) != set(cells(space)):
        raise SystemExit(
            f"{path} is another surface than --only asks for: name another file with --table"
        )
    return table


def best_by_budget(
    table: Mapping[Cell, Losses], space: Space, method: Method, seed: int, *, halving: bool
) -> list[tuple[float, int]]:
    """After each trial, the least loss of those that ran to their end, and the epochs trained so
    far."""
    history: list[Tried] = []
    best: list[tuple[float, int]] = []
    for _ in range(max(BUDGETS)):
        cell = suggest(space, method=method, seed=seed, history=history)
        assert cell is not None, "there are more cells than the largest budget"
        losses = table[cell]
        above = thresholds(len(losses), [tried.losses for tried in history]) if halving else {}
        stop = next(
            (epoch for epoch in losses if losses[epoch] > above.get(epoch, float("inf"))), None
        )
        seen = {epoch: loss for epoch, loss in losses.items() if stop is None or epoch <= stop}
        history.append(Tried(cell=cell, state="done" if stop is None else "pruned", losses=seen))
        done = [min(tried.losses.values()) for tried in history if tried.state == "done"]
        best.append((min(done), sum(len(tried.losses) for tried in history)))
    return best


def compare(table: Mapping[Cell, Losses], space: Space, *, halving: bool) -> None:
    """Print a line for each budget."""
    methods: tuple[Method, ...] = ("tpe", "random")
    runs = {
        method: [
            best_by_budget(table, space, method, seed, halving=halving) for seed in range(REPEATS)
        ]
        for method in methods
    }
    finals = sorted(min(losses.values()) for losses in table.values())
    for budget in BUDGETS:
        tpe, chance = ([run[budget - 1][0] for run in runs[method]] for method in methods)
        epochs = [statistics.mean(run[budget - 1][1] for run in runs[method]) for method in methods]
        print(
            f"budget {budget:3}, {'with' if halving else 'without'} halving: "
            f"TPE {_shown(tpe, finals)}, random {_shown(chance, finals)}: "
            f"TPE is "
            f"{'better' if statistics.mean(tpe) < statistics.mean(chance) else 'not better'} "
            f"(in {sum(a < b for a, b in itertools.product(tpe, chance))} of {REPEATS**2} pairs); "
            f"{epochs[0]:.0f} and {epochs[1]:.0f} epochs trained"
        )


def _shown(lows: Sequence[float], finals: Sequence[float]) -> str:
    beaten_by = statistics.mean(sum(final < low for final in finals) for low in lows)
    return f"{statistics.mean(lows):.5f} ± {statistics.stdev(lows):.5f} (mean place {beaten_by + 1:.0f})"


def main() -> None:
    """Make or read the table, then search in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--table", type=Path, required=True, help="where the surface is, or is to be, kept"
    )
    parser.add_argument("--processes", type=int, default=2, help="for training it; default: 2")
    parser.add_argument(
        "--only", nargs="+", choices=[d.short for d in TUNING.stage2], help="dimensions that vary"
    )
    parser.add_argument("--epochs", type=int, help="of a trial; default: the scale's 2")
    options = parser.parse_args()
    space = reduced(options.only)
    table = read_table(options.table, space, options.epochs, options.processes)
    finals = sorted(min(losses.values()) for losses in table.values())
    print(
        f"Surface of {len(table):,} cells: least loss {finals[0]:.5f}, median "
        f"{statistics.median(finals):.5f}, "
        f"greatest {finals[-1]:.5f} nats per token; mean of the best over {REPEATS} repeats, ± "
        f"standard deviation:"
    )
    for halving in (False, True):
        compare(table, space, halving=halving)


if __name__ == "__main__":
    main()
