"""Rules of claims.csv; each recomputes one kind of claim.

A rule returns the recomputed value as text, and whether the claim holds (None if data are missing).
Reports print the rule's docstring, with `{argument}` filled in from claims.csv.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.audit.claims import Cell, Claim
from orchestrator.analysis.statistics.correlation import correlate
from orchestrator.analysis.statistics.samples import SampleSummary, t_test
from search_spaces.awd_lstm import awd_lstm
from search_spaces.fair_capacity import TUNING
from search_spaces.models import trial
from search_spaces.published import predictions
from trainables.config import CorpusConfig, MosConfig
from trainables.corpora import PUBLISHED_CORPORA
from trainables.parameters import in_millions, parameter_count

Outcome = tuple[str, bool | None]
SEEDS, WITH_AUTHORS = 10, 11
# Half a unit of the second decimal, plus floating-point error.
ROUNDING = 0.005 * (1 + 1e-9)
SAMUELSON = (WITH_AUTHORS - 1) / math.sqrt(WITH_AUTHORS)
# The models of Fig. 3. The paper's text calls LMS-PLIF low-rank although its Press rank is 580.
LOW_RANK, HIGH_RANK = {"Softmax", "LMS-PLIF", "MoC", "MoC*"}, {"SS", "GSS", "MoS", "MoS*"}


def _values(cells: list[Cell]) -> list[float]:
    return [cell.numbers[0] for cell in cells]


def same(claim: Claim) -> Outcome:
    """Printed digits must all equal those in {argument}."""
    other = claim.cells[-1]
    return other.printed, float(claim.printed) == other.numbers[0]


def p_value(claim: Claim) -> Outcome:
    """Student's t-test of the printed means and deviations, n = 10; three digits must agree."""
    p = _student_p(claim)
    return f"{p:.3g}", f"{p:.2e}" == f"{float(claim.printed):.2e}"


def p_value_span(claim: Claim) -> Outcome:
    """Student's t-test, n = 10, over all values that round to the printed means and deviations."""
    # p falls with the distance of the means and grows with the deviations, so these steps give
    # its exact range.
    low, p, high = (_student_p(claim, step) for step in (-ROUNDING, 0.0, ROUNDING))
    is_within = low <= float(claim.printed) <= high
    return f"{p:.3g}; rounding allows {low:#.2g} to {high:#.2g}", is_within


def _student_p(claim: Claim, step: float = 0.0) -> float:
    mean_a, sd_a, mean_b, sd_b, *_ = _values(claim.inputs)
    distance = max(abs(mean_a - mean_b) - 2 * step, 0.0)
    a = SampleSummary(n=SEEDS, mean=distance, sd=sd_a + step)
    b = SampleSummary(n=SEEDS, mean=0.0, sd=sd_b + step)
    p_value = t_test(a, b, equal_variances=True).p_value
    assert p_value is not None
    return p_value


def mean_of_eleven(claim: Claim) -> Outcome:
    """Mean of the 10 seeds and the authors' seed, within 0.01, because both means are rounded.

    The 10 seeds are in SM Table 1, the authors' seed in SM Tables 10 and 11 (ET-ASGD).
    """
    eleven, ten, authors = _values(claim.cells)
    joint_mean = (SEEDS * ten + authors) / WITH_AUTHORS
    return f"{joint_mean:.3f}", abs(joint_mean - eleven) <= 2 * ROUNDING


def deviation_of_eleven(claim: Claim) -> Outcome:
    """Standard deviation of the 10 seeds and the authors' seed together, allowing for rounding."""
    (sd, sd_10), (mean_10, authors) = _values(claim.cells), _values(claim.inputs)
    return joined_deviation(sd, sd_10, abs(authors - mean_10), 2 * ROUNDING)


def an_eleventh(claim: Claim) -> Outcome:
    """Standard deviation of Table 4's 10 seeds and an eleventh seed that gives Table 3's mean.

    Both tables have the same model. The range allows for rounding.
    """
    mean, sd, mean_10, sd_10 = _values(claim.cells)
    distance = WITH_AUTHORS * abs(mean - mean_10)
    return joined_deviation(sd, sd_10, distance, 2 * WITH_AUTHORS * ROUNDING)


def joined_deviation(printed: float, sd_10: float, distance: float, room: float) -> Outcome:
    """Return the range of a standard deviation of 11 values, and whether `printed` is in it.

    Ten values have the printed deviation `sd_10`. The eleventh differs from the mean of the ten by
    `distance` +- `room`.
    """
    low, high = (
        math.hypot(
            math.sqrt((SEEDS - 1) / SEEDS) * max(sd_10 + side * ROUNDING, 0.0),
            max(distance + side * room, 0.0) / math.sqrt(WITH_AUTHORS),
        )
        for side in (-1, 1)
    )
    return f"{low:.3f} to {high:.3f}", low - ROUNDING <= printed <= high + ROUNDING


def one_of_eleven(claim: Claim) -> Outcome:
    """The authors' seed is at most 10/√11 deviations from the mean, allowing for rounding.

    The mean includes this seed (SM Tables 10 and 11). No value of 11 can be further from their
    mean (Samuelson 1968).
    """
    (mean, sd, authors), rounding = _values(claim.cells), float(claim.row["argument"])
    distance, allowed = abs(authors - mean), SAMUELSON * (sd + rounding) + 2 * rounding
    return (
        f"{authors:g} is {distance:.4g} from the mean; at most {allowed:.4g} is possible",
        distance <= allowed,
    )


def perplexity_difference(claim: Claim) -> Outcome:
    """Softmax's test perplexity minus that of the model (SM Table 10), with all printed digits.

    Both models have the same averaging method.
    """
    softmax, model = _halves(claim)
    et_asgd, nt_asgd = (f"{difference:+.2f}" for difference in softmax - model)
    return f"{et_asgd} (ET-ASGD) or {nt_asgd} (NT-ASGD)", claim.printed in (et_asgd, nt_asgd)


def talk_difference(claim: Claim) -> Outcome:
    """Softmax minus LMS-PLIF in the talk's table; may differ by 0.01, because both are rounded."""
    softmax, lms_plif = _values(claim.inputs)
    difference = softmax - lms_plif
    return f"{difference:.2f}", abs(difference - float(claim.printed)) <= 2 * ROUNDING


def widening_gap(claim: Claim) -> Outcome:
    """Test minus train perplexity in {argument} grows with every step of K."""
    train, test = _halves(claim)
    gaps = test - train
    return ", ".join(f"{gap:.2f}" for gap in gaps), bool((np.diff(gaps) > 0).all())


def correlation(claim: Claim) -> Outcome:
    """Correlation computed here from the printed ranks and perplexities."""
    pearson, spearman = (correlate(*_halves(claim), ranks=is_ranked) for is_ranked in (False, True))
    assert pearson.value is not None
    ends = pearson.interval
    interval = f", 95% [{ends.low:+.2f}, {ends.high:+.2f}]" if ends else ""
    signs = ("positive", "no sign") if pearson.value < 0 else ("negative", "no sign")
    return (
        f"Pearson r = {pearson.value:+.3f}{interval}, Spearman {spearman.value:+.2f}, "
        f"n = {len(claim.inputs) // 2}",
        claim.printed.startswith(signs),
    )


def benchmarks_won(claim: Claim) -> Outcome:
    """Number of benchmarks in SM Table 3 on which MoC's rho is greater than MoS's."""
    moc, mos = _halves(claim)
    wins = np.count_nonzero(moc > mos)
    return f"{wins} of {len(moc)}", wins == int(claim.printed)


def _halves(claim: Claim) -> NDArray[np.float64]:
    return np.reshape(_values(claim.inputs), (2, -1))


def corpus_count(claim: Claim) -> Outcome:
    """Count in the published corpus files (identified by SHA-256)."""
    corpus, attribute = claim.row["argument"].split()
    count = f"{getattr(PUBLISHED_CORPORA[corpus], attribute):,}"
    return count, count == claim.printed


def d_plus_2(claim: Claim) -> Outcome:
    """Rank d + 2: d (SM Table 6) from W h, 1 from the bias, 1 from the normaliser of each row."""
    [width] = _values(claim.inputs)
    rank = f"{width + 2:.0f}"
    return rank, rank == claim.printed


def over_all_contexts(claim: Claim) -> Outcome:
    """Rank of the same model at more contexts of the same text."""
    rank, _, contexts = _values(claim.inputs)
    return f"{rank:.0f} over all {contexts:,.0f} contexts", False


def different_models(claim: Claim) -> Outcome:
    """Different models have different probabilities, so equal numbers cannot be measurements."""
    return "none", len({cell.printed for cell in claim.cells}) > 1


def falling_probabilities(claim: Claim) -> Outcome:
    """Probabilities must fall along the list, as in all other lists of the table."""
    is_falling = all(cell.numbers == sorted(cell.numbers, reverse=True) for cell in claim.cells)
    return "none", is_falling


def low_rank_hits(_: Claim) -> Outcome:
    """Contexts for which both high-rank and low-rank models list the true word (SM Table 2).

    The low-rank models are Softmax, LMS-PLIF, MoC and MoC*.
    """
    low, high = (
        {
            context
            for model in models
            for context, prediction in predictions()[model].items()
            if prediction["rank"]
        }
        for models in (LOW_RANK, HIGH_RANK)
    )
    return f"{len(high & low)} of {len(high)}", high <= low


def parameters(claim: Claim) -> Outcome:
    """Parameters of SM Table 6's configuration, in millions, truncated to two decimals."""
    count = in_millions(_model_parameters(claim))
    return count, count == claim.printed


def talk_parameters(claim: Claim) -> Outcome:
    """Parameters of the AAAI paper's configuration, truncated or rounded to the printed digits."""
    exact = _model_parameters(claim) / 1e6
    unit = 10.0 ** -len(claim.printed.partition(".")[2])
    return f"{exact:.2f}", -unit / 2 <= exact - float(claim.printed) < unit


def _model_parameters(claim: Claim) -> int:
    name, model = claim.row["argument"].split()
    corpus = CorpusConfig(name=name, sha256="0" * 64)
    if model.isdigit():
        config = awd_lstm(corpus, MosConfig(mixtures=int(model)))
    else:
        config = TUNING.sides[model](corpus) if model in TUNING.sides else trial(corpus, model)
    return parameter_count(config, PUBLISHED_CORPORA[name].vocabulary_size)


def two_a_knot(claim: Claim) -> Outcome:
    """Two parameters for each of {argument} knots, in millions, rounded to one decimal."""
    millions = f"{2 * int(claim.row['argument'].replace(',', '')) / 1e6:.1f}"
    return millions, millions == claim.printed


def tried_value(claim: Claim) -> Outcome:
    """The value was tried in stage 1 or 2, or it is the default in SM Table 6."""
    stages = [
        f"stage {cell.row['stage']}" if "stage" in cell.row else "SM Table 6"
        for cell in claim.inputs
        if float(claim.printed) in cell.numbers
    ]
    return " and ".join(stages) or "not tried", bool(stages)


def word_pairs(claim: Claim) -> Outcome:
    """Word pairs counted in the files of the published SHA-256; all printed digits must agree.

    Words are lower-cased; the vocabulary is that of all three splits.
    """
    corpus, metric = claim.row["argument"].split(maxsplit=1)
    trial = claim.trials.get(corpus, {"state": "absent", "cause": None})
    if trial["state"] == "done":
        count = str(int(trial[metric]))
        return count, count == claim.printed
    reason = (
        f"the trial that counts word pairs in {corpus} has not run. It needs this corpus and the "
        "13 benchmarks. Give their folder with --data-dir"
    )
    return trial["cause"] or reason, None
