from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from orchestrator.plan import PlanRequest, make_plan
from search_spaces import turned_ranks
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES
from search_spaces.study import group_of
from trainables.config import TURNS

SEEDS = 12
FUNCTIONS = ("softmax", *TURNS)
EFFECTS = dict(zip(FUNCTIONS, (0, 0.0, 0.001, 0.004, 0.01, 0.0005, 0.0, 0.002), strict=True))


def trials(model: str = "LSTM", seed: int = 0) -> pd.DataFrame:
    """Return trials with known effects: ln(perplexity) has a seed's effect and a function's."""
    rng = np.random.default_rng(seed)
    seed_effects = rng.normal(scale=0.05, size=SEEDS)
    rows = []
    for seed, common in enumerate(seed_effects):
        for index, (function, effect) in enumerate(EFFECTS.items()):
            loss = 4.5 + common + effect + rng.normal(scale=0.001)
            rank = 26 * 1.5**index * math.exp(rng.normal(scale=0.02))
            row: dict[str, Any] = {
                "group": f"{model} {function}",
                "seed": seed,
                "test_perplexity": math.exp(loss),
                "press_rank": rank,
                "kl_rank_1e-2": 13 + index % 2,
            }
            if function == "softmax":
                for number, name in enumerate(TURNS, 1):
                    row |= {
                        f"turned {name} press_rank": 26 * 1.5**number / 2,
                        f"turned {name} test_perplexity": math.exp(4.5 + common),
                        f"turned {name} kl_from_softmax": 1e-4,
                    }
            rows.append(row)
    return pd.DataFrame(rows)


def wide(frame: pd.DataFrame, metric: str = "test_perplexity", model: str = "LSTM") -> np.ndarray:
    table = frame.pivot_table(index="seed", columns="group", values=metric)
    return np.log(table[[f"{model} {name}" for name in FUNCTIONS]].to_numpy())


def tables(parts: list[Any]) -> pd.DataFrame:
    [table] = [part for part in parts if isinstance(part, pd.DataFrame)]
    return table


def test_equivalence_finds_small_effects_only() -> None:
    lstm, transformer = trials(), trials(model="Transformer", seed=1)
    table = tables(turned_ranks.equivalence(pd.concat([lstm, transformer])))
    p_values = []
    for losses in (wide(lstm), wide(transformer, model="Transformer")):
        for column in range(1, len(FUNCTIONS)):
            difference = losses[:, column] - losses[:, 0]
            p_values.append(
                max(
                    stats.ttest_1samp(difference, 0.004, alternative="less").pvalue,
                    stats.ttest_1samp(difference, -0.004, alternative="greater").pvalue,
                )
            )
    order = np.argsort(p_values)
    holm = np.maximum.accumulate(np.sort(p_values) * np.arange(len(order), 0, -1)).clip(max=1)
    assert table["equivalence p (Holm)"].to_numpy()[order] == pytest.approx(holm)
    table = table[table["model"] == "LSTM"].set_index("function")
    verdicts = dict(zip(table.index.str.removesuffix(" *"), table["equivalent"], strict=True))
    assert verdicts["tanh 1000"] == verdicts["softplus 0.1"] == "yes"
    assert verdicts["tanh 15"] == verdicts["tanh 30"] == "not shown"
    assert sum(name.endswith(" *") for name in table.index) == len(turned_ranks.NEAR)


def test_dose_response_has_both_intervals() -> None:
    frame = trials()
    table = tables(turned_ranks.dose_response(frame)).set_index("rank")
    x, y = wide(frame, "press_rank"), wide(frame, "test_perplexity")
    span = np.ptp(x.mean(axis=0))
    slopes = [np.polyfit(*pair, 1)[0] for pair in zip(x, y, strict=True)]
    scipys = stats.linregress(x.mean(axis=0), y.mean(axis=0))
    found = table.loc["Press rank"]
    assert found["p (seeds)"] == pytest.approx(stats.ttest_1samp(slopes, 0).pvalue)
    assert found["p (functions)"] == pytest.approx(scipys.pvalue)
    for column, slope in (("seeds", np.mean(slopes)), ("functions", scipys.slope)):
        text = found[f"change of perplexity [95% over {column}]"]
        assert text.startswith(f"{100 * math.expm1(slope * span):+.2f}%")


def test_seed_with_equal_ranks_has_no_slope() -> None:
    frame = trials()
    frame.loc[frame["seed"] < 4, "kl_rank_1e-2"] = 13
    row = tables(turned_ranks.dose_response(frame)).set_index("rank").loc["KL rank (0.01 nats)"]
    x, y = wide(frame, "kl_rank_1e-2")[4:], wide(frame, "test_perplexity")[4:]
    slopes = [np.polyfit(*pair, 1)[0] for pair in zip(x, y, strict=True)]
    assert row["seeds"] == SEEDS - 4
    assert row["p (seeds)"] == pytest.approx(stats.ttest_1samp(slopes, 0).pvalue)


def test_slope_between_seeds_ignores_function_effects() -> None:
    """Regression on an indicator of each function gives the slope; leaving seeds out, its error."""
    frame = trials()
    x, y = wide(frame, "press_rank"), wide(frame, "test_perplexity")

    def slope(rows: np.ndarray) -> float:
        indicators = np.tile(np.eye(len(FUNCTIONS)), (len(rows), 1))
        design = np.column_stack([x[rows].ravel(), indicators])
        return float(np.linalg.lstsq(design, y[rows].ravel())[0][0])

    seeds = np.arange(SEEDS)
    estimate = turned_ranks.slope_between_seeds(x, y)
    assert estimate.value == pytest.approx(slope(seeds))
    left_out = np.array([slope(seeds[seeds != seed]) for seed in seeds])
    error = math.sqrt((SEEDS - 1) / SEEDS * ((left_out - left_out.mean()) ** 2).sum())
    half = stats.t.ppf(0.975, SEEDS - 1) * error
    assert estimate.high - estimate.value == pytest.approx(half)


def test_bent_ranks_are_compared_by_seed() -> None:
    table = tables(turned_ranks.bent_after_training(trials()))
    assert list(table["function"]) == list(TURNS)
    ratios = [float(text.split()[0]) for text in table["ratio [95%]"]]
    assert ratios == pytest.approx([2] * len(TURNS), rel=0.05)


def test_few_trials_give_a_sentence() -> None:
    few = trials()[lambda frame: frame["seed"] < 2]
    for analysis in (
        turned_ranks.equivalence,
        turned_ranks.dose_response,
        turned_ranks.bent_after_training,
        turned_ranks.between_seeds,
    ):
        [sentence] = analysis(few)
        assert "yet" in sentence


def test_plan_has_eight_functions_of_two_models() -> None:
    plan = make_plan(load_study("turn_the_rank"), SCALES["quick"], "ptb", PlanRequest())
    groups = {group_of(trial.name) for trial in plan.trials}
    assert groups == {f"{model} {name}" for model in ("LSTM", "Transformer") for name in FUNCTIONS}
    assert len(plan.trials) == 30 * len(groups)
