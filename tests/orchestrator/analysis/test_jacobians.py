from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from orchestrator.analysis import STRAIGHT_R2, JacobianNumbers, jacobian_numbers
from orchestrator.analysis import rows as rows_of
from orchestrator.report.sections.jacobians import jacobian_section
from search_spaces.analyses import JacobianSpectra
from trainables.experiments.layer_jacobian import spectrum_metrics

VANISHING = {
    "dense": 0.5,
    "softmax gates K=2": 0.25,
    "softmax gates K=4": 0.3,
    "constant gates K=2": 0.26,
}
BETTER = {"vanishing_1e-1": 0.3, "entropy_rank": 70.0, "log10_condition_excess": 1.0}
OFFSETS = (-0.01, 0.0, 0.01)
STRAIGHT = (0.995, 0.996, 0.994)


def frame_of(
    seeds: int = 3, vanishing: dict[str, float] = VANISHING, state: str = "done"
) -> pd.DataFrame:
    trials = [
        {
            "trial_id": f"{group} seed={seed}",
            "group": group,
            "state": state,
            "layer.name": "dense" if group == "dense" else "experts",
            "layer.gates": group.partition(" ")[0],
            "layer.experts": int(group[-1]) if group[-1].isdigit() else 1,
            **{metric: mean + OFFSETS[seed] for metric, mean in BETTER.items()},
            "vanishing_1e-3": value + OFFSETS[seed],
            "first_half_r2": STRAIGHT[seed],
        }
        for group, value in vanishing.items()
        for seed in range(seeds)
    ]
    frame = pd.DataFrame(trials)
    return frame.assign(zero_share=2.0 ** -frame["layer.experts"] + frame["vanishing_1e-1"] - 0.3)


def numbers_of(frame: pd.DataFrame) -> JacobianNumbers:
    values = np.array([3.0, 2.0, 1.0, 0.0])
    spectra = {name: values * (int(name[-1]) + 1) for name in frame["trial_id"]}
    return jacobian_numbers(frame, JacobianSpectra(benchmark="other"), spectra=spectra)


def numbers(**changes: Any) -> JacobianNumbers:
    return numbers_of(frame_of(**changes))


def test_spectra_are_means_over_seeds() -> None:
    spectra = numbers().spectra.set_index("layer")
    assert list(spectra.loc["softmax gates K=2"].iloc[0])[:4] == ["softmax", 2, "dense", 3]
    dense = spectra.loc["dense"]
    assert list(dense.iloc[0])[:4] == ["none", 1, "dense", 3]
    assert list(dense["mean_singular_value"]) == [6, 4, 2, 0]
    assert list(dense["deviation_over_seeds"]) == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("share", "seeds", "outcome"),
    [
        (0.5, 3, "held"),
        (0.54, 3, "not decided"),
        (0.7, 3, "did not hold"),
        (0.995, 2, "not decided"),
        (0.01, 2, "not decided"),
    ],
)
def test_interval_decides_the_half(share: float, seeds: int, outcome: str) -> None:
    half, _ = rows_of(numbers(seeds=seeds, vanishing={"dense": share}).claims)
    assert half.outcome == outcome
    sample = [share + offset for offset in OFFSETS[:seeds]]
    ends = stats.t.interval(0.95, seeds - 1, loc=np.mean(sample), scale=stats.sem(sample))
    assert (half.mean_low, half.mean_high) == pytest.approx(np.clip(ends, 0, 1))


def outcomes(results: JacobianNumbers) -> dict[tuple[str, str], str]:
    return {(claim.claim, claim.metric): claim.outcome for claim in rows_of(results.claims)}


def test_step_uses_welch_and_holm() -> None:
    results, claim = numbers(), "Softmax gates break the degeneracy of the dense layer"
    steps = results.steps.groupby(["claim", "metric"]).get_group((claim, "vanishing_1e-3"))
    assert list(steps["layer"]) == ["softmax gates K=2", "softmax gates K=4"]
    sample = np.array(OFFSETS)
    first, second = (
        stats.ttest_ind(sample + value, sample + 0.5, equal_var=False).pvalue
        for value in (0.25, 0.3)
    )
    assert list(steps["welch_p"]) == pytest.approx([first, second])
    assert list(steps["holm_p"]) == pytest.approx([2 * first, max(2 * first, second)])
    assert outcomes(results)[claim, "vanishing_1e-3"] == "held"


def test_steps_have_three_verdicts() -> None:
    """No claim uses the condition number, because it grows with the number of nonzero rows."""
    frame = frame_of()
    frame["entropy_rank"] += frame["layer.experts"]
    verdicts, more = (
        outcomes(numbers_of(frame)),
        "With softmax gates, more experts make the dense layer better conditioned",
    )
    assert verdicts[more, "vanishing_1e-3"] == "did not hold", (
        "K=4 has 0.30, which is worse than 0.25 of K=2"
    )
    assert verdicts[more, "entropy_rank"] == "held", "a higher entropy rank is better"
    assert verdicts[more, "log10_condition_excess"] == "not decided"
    assert not any(metric == "log10_condition_nonzero" for _, metric in verdicts)
    assert not any("constant gates, more" in text for text, _ in verdicts), (
        "a single K shows no trend"
    )


@pytest.mark.parametrize("seeds", [1, 2])
def test_two_seeds_decide_nothing(seeds: int) -> None:
    results = numbers(seeds=seeds)
    assert set(results.claims["outcome"]) == {"not decided"}
    section = jacobian_section(results)
    assert all(f"{seeds} seed" in text for text in section.sentences[:-2])
    assert section.texts[0].head[0] == "layer", "the table comes without verdicts"
    assert all(drawing.draw().axes for drawing in section.drawings)
    assert not jacobian_section(numbers(state="planned")).tables


def test_the_section_names_each_outcome() -> None:
    section = jacobian_section(numbers())
    assert "held" in section.sentences[0] and any("sweep.py other" in x for x in section.sentences)
    rows = [[cell.text for cell in line] for line in section.texts[0].body]
    assert any(row[2:5] == ["softmax gates K=4", "softmax gates K=2", "0.05000"] for row in rows)
    assert list(section.written["spectra.csv"].iloc[0, :7]) == [
        "dense",
        "none",
        1,
        "dense",
        3,
        1,
        6.0,
    ]
    figure = section.drawings[0].draw()
    assert [len(axes.lines) for axes in figure.axes] == [3, 2], "the dense layer is in both panels"


def test_layers_of_images_have_their_baselines() -> None:
    names = {
        "convolution": ("convolution", "constant", 1, 0.5),
        "convolution gates K=2": ("convolution", "softmax", 2, 0.25),
        "averaging": ("non_local", "constant", None, 0.98),
        "non-local": ("non_local", "softmax", None, 0.01),
    }
    image = frame_of(vanishing={name: values[3] for name, values in names.items()})
    for column, place in (("name", 0), ("gates", 1), ("experts", 2)):
        image[f"layer.{column}"] = [names[group][place] for group in image["group"]]
    chains = frame_of(vanishing={"dense L=2": 0.6}).assign(depth=2)
    results = numbers_of(pd.concat([frame_of().assign(depth=1), image.assign(depth=1), chains]))
    steps = results.steps[results.steps["metric"] == "vanishing_1e-3"]
    pairs = set(zip(steps["layer"], steps["against"], strict=True))
    assert {("convolution gates K=2", "convolution"), ("non-local", "averaging")} < pairs
    assert ("convolution gates K=2", "dense") not in pairs
    assert list(results.zeros["layer"]) == [*VANISHING, "convolution", "convolution gates K=2"]
    titles = [axes.get_title() for axes in jacobian_section(results).drawings[0].draw().axes]
    assert [title for title in titles if title.startswith("convolution")] and len(titles) == 6
    half = next(rows_of(results.claims))
    assert half.mean == pytest.approx(0.5), "the first claim is about the dense layer alone"
    assert (
        outcomes(results)[
            "Softmax gates break the degeneracy of the non-local layer", "vanishing_1e-3"
        ]
        == "held"
    )


def test_root_and_exponential_are_curved() -> None:
    x = np.linspace(0, 1, 64)
    for half_R, straight in (
        (1 - x + 0.02 * x**2, True),
        (np.sqrt(1 - x), False),
        (np.exp(-x), False),
    ):
        sigma_NR = np.concatenate([half_R + 1.0, np.zeros(64)])[None]
        r2 = float(spectrum_metrics(sigma_NR, np.array([64]), sigma_NR)["first_half_r2"])
        assert (r2 > STRAIGHT_R2) == straight


def test_intervals_without_spread_are_excluded() -> None:
    frame = frame_of()
    frame.loc[frame["group"].str.contains("K=4|constant"), "zero_share"] = 0.0
    section = jacobian_section(numbers_of(frame))
    assert "2 of the 2 intervals" in section.sentences[-2]
    assert [line[-1].text == "\N{EN DASH}" for line in section.texts[1].body] == [
        False,
        False,
        True,
        True,
    ]
