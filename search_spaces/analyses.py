"""What a study can ask of its results: tables, tests, correlations, figures, and the published
values beside them.

A group is what the names of trials say apart from their seed: "mos K=15" of "mos K=15 seed=28".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from typing_extensions import override

from search_spaces.published import PublishedPredictions, PublishedTable


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """One question to the results of a study; orchestrator/report/questions.py says what answers
    it."""

    @property
    def has_published(self) -> bool:
        """Whether printed values stand beside the answer."""
        return bool(getattr(self, "published", None))

    def without_published(self) -> Self:
        """The same question where no paper has printed anything that could stand beside."""
        return replace(self, **{"published": {}}) if hasattr(self, "published") else self


@dataclass(frozen=True, kw_only=True)
class PublishedCorrelation:
    """Pearson correlations that a paper printed for one corpus, without intervals."""

    all_cells: float
    windowed: float
    """Inside the perplexity window only."""


@dataclass(frozen=True, kw_only=True)
class Correlation(Analysis):
    """Ask for the correlation of two metrics over the trials, all of them and inside a window of
    `y`."""

    x: str = "press_rank"
    y: str = "test_perplexity"
    definitions: tuple[str, ...] = ()
    """Other metrics whose correlations with `y` a table lists, each next to its variant with
    centred rows, if measured. """
    windows: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Corpus -> the published window (low, high) of `y`, both ends inside. Used at paper scale
    only: a perplexity window means nothing for other models. Elsewhere the window is the better
    half of the trials."""
    published: Mapping[str, PublishedCorrelation] = field(default_factory=dict)
    """Corpus -> what the paper printed."""

    @override
    def without_published(self) -> Self:
        """Without the window that the paper has printed, too."""
        return replace(self, published={}, windows={})


@dataclass(frozen=True, kw_only=True)
class GridMap(Analysis):
    """Ask for tables and heat maps of metrics over two config values, named by their dotted
    paths."""

    row: str
    column: str
    values: tuple[str, ...] = ("press_rank", "test_perplexity")


@dataclass(frozen=True, kw_only=True)
class GroupTable(Analysis):
    """Ask for the mean and standard deviation of metrics in each group, beside the published
    ones."""

    metrics: tuple[str, ...]
    groups: tuple[str, ...] = ()
    """Those that are shown; empty for all."""
    title: str = "Results by model"
    source: str = ""
    """The published table."""
    published: PublishedTable = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AgainstBaselines(Analysis):
    """Ask for a metric in groups against others."""

    baselines: Mapping[str, str]
    """Group -> the group that it is held against."""
    metric: str = "test_perplexity"

    def __post_init__(self) -> None:
        """Raises TypeError where `baselines` are no mapping: it would be noticed after all
        training."""
        if not isinstance(self.baselines, Mapping):
            raise TypeError(
                f"baselines of {type(self).__name__} map a group to the group that it is held "
                f"against, as in "
                f"{{'mos': 'softmax'}}; got {self.baselines!r}"
            )


@dataclass(frozen=True, kw_only=True)
class Differences(AgainstBaselines):
    """Ask for how much lower a metric is in each group than in its baseline, from means (positive:
    better)."""

    source: str = ""
    published: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """Corpus -> group -> who says so -> the difference."""


@dataclass(frozen=True, kw_only=True)
class Comparison(AgainstBaselines):
    """Ask for significance tests of a metric between each group and its baseline.

    They are paired by seed, because trials of one seed share initial draws and data order, and
    unpaired for groups that share fewer than two seeds. All comparisons are one family for Holm's
    correction."""

    seeds: tuple[int, ...] | None = None
    """The trials that count; None takes all. A seed that somebody chose is no random one."""
    source: str = ""
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Corpus -> group -> p-value of Student's unpaired test."""


@dataclass(frozen=True, kw_only=True)
class Counts(Analysis):
    """Ask how often each value of a metric came up in each group, for a metric that takes few
    values."""

    metric: str
    values: tuple[float, ...] = ()
    """Shown even where they never came up."""


@dataclass(frozen=True, kw_only=True)
class Curves(Analysis):
    """Ask for metrics as curves over a setting, one small figure each, a point a trial, the
    published ones beside."""

    x: str
    """A config value, by its dotted path, or a metric."""
    metrics: tuple[str, ...]
    caption: str
    published: PublishedTable = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Ask at which least x a line first gets as far as a value of a metric, in the mean."""

    metric: str
    value: float
    at_most: bool = False
    """Whether a lower metric is the better one: reached at or below `value`, else at or above
    it."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A printed statement of which line has the better metric, to be held against ours where it was
    made."""

    text: str
    """The statement in words, as a finding quotes it."""
    metric: str
    better: str
    """A value of `by`."""
    than: str
    panels: tuple[Any, ...] = ()
    """Values of `panel` that it is about; empty for all."""
    x_up_to: float | None = None
    """The largest x that it is about; None for every x."""
    lower_is_better: bool = False


@dataclass(frozen=True, kw_only=True)
class Lines(Analysis):
    """Ask for metrics against a config value, a line for each value of another, in panels by a
    third.

    Trials that lack one of these config values are left out. A point is the mean over the trials
    that differ in nothing else than their seed, with their least and greatest."""

    x: str
    """The dotted path of a config value that is a number."""
    by: str
    """The dotted path of a config value: a line for each of its values."""
    metrics: tuple[str, ...]
    panel: str | None = None
    """The dotted path of a config value: a panel for each of its values; None for one panel a
    metric."""
    reference: str = ""
    """A group without such config values, drawn as a level line; empty for none."""
    title: str = ""
    logarithmic_x: bool = False
    logarithmic_y: tuple[str, ...] = ()
    """Metrics, all positive, with a logarithmic axis."""
    reaches: tuple[Reach, ...] = ()
    claims: tuple[Claim, ...] = ()
    note: str = ""
    """What the source has or has not printed, and other words on the method."""
    after: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Further points, of settings that were tried on a trial after its training: prefix of the
    metrics -> line and x. With "bent tanh 15 " -> ("bent", 15.0), a trial's "bent tanh 15
    press_rank" is a Press rank at 15 on the line "bent"."""


@dataclass(frozen=True, kw_only=True)
class Predictions(Analysis):
    """Ask for the likeliest next words at chosen contexts (measurement top_k), beside the published
    ones."""

    source: str = ""
    """The published table."""
    published: Mapping[str, PublishedPredictions] = field(default_factory=dict)
    """By corpus."""


@dataclass(frozen=True, kw_only=True)
class Similarity(Analysis):
    """Ask for the word-similarity benchmarks (measurement word_similarity): which group's embedding
    is better."""

    published: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """Corpus -> benchmark -> group -> Spearman's rho."""


@dataclass(frozen=True, kw_only=True)
class Tuned(Analysis):
    """Ask for what a tuning came to: trials and best validation perplexity of each side and
    stage."""


@dataclass(frozen=True, kw_only=True)
class TrueRank(Analysis):
    """Ask which metrics find the rank of a generated language's true log-P matrix: in the exact
    matrix, in the one rounded or with noise, and in what each group learned; and how far each
    group's perplexity is above the truth's.

    On a corpus without a known truth there is nothing to answer.
    """

    metrics: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Spectra(Analysis):
    """Ask for the singular values of the trials' log-P matrices, a line a trial, coloured by Press
    rank.

    A study that asks for no spectra gets these.
    """


@dataclass(frozen=True, kw_only=True)
class GroupSpectra(Spectra):
    """Ask for the spectra coloured by group instead of by rank."""


@dataclass(frozen=True, kw_only=True)
class LossByRank(Analysis):
    """Ask what least-squares approximations of log P cost in nats, over their rank (measurement
    kl_rank), a line a group."""


@dataclass(frozen=True, kw_only=True)
class RankOverTraining(Analysis):
    """Ask for ranks and validation perplexity from epoch to epoch, as a figure and a table.

    Trials without ranks by epoch (`evaluation.epoch_rank_contexts`) have no answer: those of scales
    small and paper."""

    ranks: tuple[str, ...] = ("press_rank", "entropy_rank")
    """Metrics of an epoch; the first one is drawn."""


@dataclass(frozen=True, kw_only=True)
class PartialCorrelations(Analysis):
    """Ask for the rank correlation of several metrics with one, as it is and with the settings
    taken away.

    They are taken away as straight lines, as a level for each value of each, for each pair and each
    triple of values."""

    metrics: tuple[str, ...]
    settings: tuple[str, ...]
    """Config values, by their dotted paths."""
    y: str = "test_perplexity"
    title: str = ""
    claim: str = ""
    """What others say, a sentence with its source."""


@dataclass(frozen=True, kw_only=True)
class JacobianSpectra(Analysis):
    """Ask for the mean spectra of layers' Jacobians (measurement layer_jacobian), and which of the
    post's claims hold of them."""

    benchmark: str = ""
    """The study that trains such layers, which this one does not; empty for none."""


@dataclass(frozen=True, kw_only=True)
class PressNoise(Analysis):
    """Ask for ranks under noise and round trips (measurement press_noise), beside what a law
    predicts."""

    @property
    @override
    def has_published(self) -> bool:
        """The ranks of SM Tables 15 and 16."""
        return True


@dataclass(frozen=True, kw_only=True)
class Audit(Analysis):
    """Ask for every printed number that follows from others, recomputed, and for an account of all
    the rest."""
