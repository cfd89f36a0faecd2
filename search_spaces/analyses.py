"""Questions that a study can ask about its results.

A group is a trial's name without its seed: "mos K=15" for "mos K=15 seed=28".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from typing_extensions import override

from search_spaces.published import PublishedPredictions, PublishedTable


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """One question, answered in orchestrator/report/questions.py."""

    @property
    def has_published(self) -> bool:
        """Return True if the answer shows published values."""
        return bool(getattr(self, "published", None))

    def without_published(self) -> Self:
        """Return the question without published values."""
        return replace(self, **{"published": {}}) if hasattr(self, "published") else self


@dataclass(frozen=True, kw_only=True)
class PublishedCorrelation:
    """Pearson correlations printed for one corpus, without intervals."""

    all_cells: float
    windowed: float
    """Inside the perplexity window only."""


@dataclass(frozen=True, kw_only=True)
class Correlation(Analysis):
    """Correlation of two metrics over all trials, and inside a window of `y`."""

    x: str = "press_rank"
    y: str = "test_perplexity"
    definitions: tuple[str, ...] = ()
    """Other metrics to correlate with `y`, each next to its variant with centred rows."""
    windows: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Published window (low, high) of `y` by corpus, ends included. At paper scale only, because
    perplexities of smaller models differ; other scales take the better half of the trials."""
    published: Mapping[str, PublishedCorrelation] = field(default_factory=dict)

    @override
    def without_published(self) -> Self:
        """Return the question without published values and windows."""
        return replace(self, published={}, windows={})


@dataclass(frozen=True, kw_only=True)
class GridMap(Analysis):
    """Tables and heat maps of metrics over two config values, given by dotted paths."""

    row: str
    column: str
    values: tuple[str, ...] = ("press_rank", "test_perplexity")


@dataclass(frozen=True, kw_only=True)
class GroupTable(Analysis):
    """Mean and standard deviation of metrics in each group, next to published ones."""

    metrics: tuple[str, ...]
    groups: tuple[str, ...] = ()
    """Empty for all."""
    title: str = "Results by model"
    source: str = ""
    published: PublishedTable = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AgainstBaselines(Analysis):
    """A metric in groups, each compared with a baseline."""

    baselines: Mapping[str, str]
    """Baseline by group."""
    metric: str = "test_perplexity"

    def __post_init__(self) -> None:
        """Raise TypeError unless `baselines` is a mapping; it would show only after training."""
        if not isinstance(self.baselines, Mapping):
            raise TypeError(
                f"{type(self).__name__}.baselines: must map each group to its baseline, such as "
                f"{{'mos': 'softmax'}}; got {self.baselines!r}"
            )


@dataclass(frozen=True, kw_only=True)
class Differences(AgainstBaselines):
    """How much lower each group's mean is than its baseline's (positive: better)."""

    source: str = ""
    published: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """Corpus -> group -> who reported it -> difference."""


@dataclass(frozen=True, kw_only=True)
class Comparison(AgainstBaselines):
    """Significance tests of a metric between each group and its baseline.

    Tests are paired by seed, because trials of one seed share initial draws and data order;
    unpaired if groups share fewer than two seeds. All tests are one family for Holm's correction.
    """

    seeds: tuple[int, ...] | None = None
    """If None, all. Exclude hand-picked seeds: they are not random draws."""
    source: str = ""
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Corpus -> group -> p-value of Student's unpaired test."""


@dataclass(frozen=True, kw_only=True)
class Counts(Analysis):
    """Number of trials in each group for each value of a metric with few values."""

    metric: str
    values: tuple[float, ...] = ()
    """Shown even if they never occurred."""


@dataclass(frozen=True, kw_only=True)
class Curves(Analysis):
    """Curves of metrics over a setting, a point per trial, next to published ones."""

    x: str
    """Dotted path of a config value, or a metric."""
    metrics: tuple[str, ...]
    caption: str
    published: PublishedTable = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Smallest x at which a line's mean reaches a value of a metric."""

    metric: str
    value: float
    at_most: bool = False
    """If True, reached at or below `value`; otherwise at or above."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published statement of which line has the better metric."""

    text: str
    """Quoted in findings."""
    metric: str
    better: str
    """A value of `by`."""
    than: str
    panels: tuple[Any, ...] = ()
    """Values of `panel`; empty for all."""
    x_up_to: float | None = None
    """Largest x that the claim covers; None for all."""
    lower_is_better: bool = False


@dataclass(frozen=True, kw_only=True)
class Lines(Analysis):
    """Metrics over `x`, with a line per value of `by` and a panel per value of `panel`.

    The three are dotted paths of config values; trials without one of them are left out. A point is
    the mean over trials that differ only in their seed, with minimum and maximum.
    """

    x: str
    """Numeric."""
    by: str
    metrics: tuple[str, ...]
    panel: str | None = None
    """If None, one panel per metric."""
    reference: str = ""
    """A group without such config values, drawn as a level line."""
    title: str = ""
    logarithmic_x: bool = False
    logarithmic_y: tuple[str, ...] = ()
    """Metrics; all their values must be positive."""
    reaches: tuple[Reach, ...] = ()
    claims: tuple[Claim, ...] = ()
    note: str = ""
    """Remarks on the source and the method."""
    after: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Settings applied after training: prefix of metrics -> line and x. With "bent tanh 15 " ->
    ("bent", 15.0), a trial's "bent tanh 15 press_rank" is a Press rank at 15 on the line "bent"."""


@dataclass(frozen=True, kw_only=True)
class Predictions(Analysis):
    """Likeliest next words at chosen contexts, next to published ones."""

    source: str = ""
    published: Mapping[str, PublishedPredictions] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Similarity(Analysis):
    """Groups' embeddings on word-similarity benchmarks."""

    published: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """Corpus -> benchmark -> group -> Spearman's rho."""


@dataclass(frozen=True, kw_only=True)
class Tuned(Analysis):
    """Trials and best validation perplexity of a tuning, by side and stage."""


@dataclass(frozen=True, kw_only=True)
class TrueRank(Analysis):
    """Metrics compared with the known rank of a generated language's log-P matrix.

    The matrix is exact, rounded or with noise, and as each group learned it; the answer includes
    each group's perplexity above the truth's. Corpora without a known truth give no answer.
    """

    metrics: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Spectra(Analysis):
    """Singular values of each trial's log-P matrix, coloured by Press rank.

    A study that asks for no spectra gets this question.
    """


@dataclass(frozen=True, kw_only=True)
class GroupSpectra(Spectra):
    """Spectra coloured by group."""


@dataclass(frozen=True, kw_only=True)
class LossByRank(Analysis):
    """Loss, in nats, of least-squares approximations of log P, by rank and group."""


@dataclass(frozen=True, kw_only=True)
class RankOverTraining(Analysis):
    """Ranks and validation perplexity by epoch.

    Trials without `evaluation.epoch_rank_contexts` (scales small and paper) give no answer.
    """

    ranks: tuple[str, ...] = ("press_rank", "entropy_rank")
    """Metrics of an epoch; only the first is drawn."""


@dataclass(frozen=True, kw_only=True)
class PartialCorrelations(Analysis):
    """Rank correlations of metrics with `y`, raw and with the settings' effect removed.

    The effect is a straight line, a level per value, per pair, or per triple of values.
    """

    metrics: tuple[str, ...]
    settings: tuple[str, ...]
    """Dotted paths."""
    y: str = "test_perplexity"
    title: str = ""
    claim: str = ""
    """A sentence with its source."""


@dataclass(frozen=True, kw_only=True)
class JacobianSpectra(Analysis):
    """Mean spectra of layers' Jacobians, and the post's claims about them."""

    benchmark: str = ""
    """The study that trains such layers."""


@dataclass(frozen=True, kw_only=True)
class PressNoise(Analysis):
    """Ranks under noise and round trips, next to a law's."""

    @property
    @override
    def has_published(self) -> bool:
        """Return True, for the ranks of SM Tables 15 and 16."""
        return True


@dataclass(frozen=True, kw_only=True)
class Audit(Analysis):
    """Printed numbers that follow from others, recomputed, and an account of the rest."""
