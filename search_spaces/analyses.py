"""Questions of a study about its results.

A group is a trial's name without its seed: "mos K=15" for "mos K=15 seed=28".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from typing_extensions import override

from search_spaces.published import PublishedPredictions, PublishedTable

GROUP_FIELDS = ("baselines", "groups", "published", "reference")
"""Fields of requests that name groups."""


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """One question; orchestrator/report/questions.py answers it."""

    @property
    def has_published(self) -> bool:
        """True if the answer shows published values."""
        return bool(getattr(self, "published", None))

    def without_published(self) -> Self:
        """Return a copy without published values."""
        return replace(self, **{"published": {}}) if hasattr(self, "published") else self

    @property
    def config_keys(self) -> list[str]:
        """Return the config keys without which there is no answer."""
        return [value for name, value in vars(self).items() if name in ("row", "column")]

    @property
    def metric_names(self) -> list[str]:
        """Return the metrics of the answer. `x` is one, or a config key without a dot."""
        if self == Correlation():  # every study's default, even if its trials have no such metrics
            return []
        fields = vars(self)
        names = [fields.get(name, "") for name in ("metric", "x", "y")]
        names += [*fields.get("metrics", ()), *fields.get("definitions", ())]
        names += [part.metric for name in ("reaches", "claims") for part in fields.get(name, ())]
        return [name for name in names if name and "." not in name]

    def with_groups(self, names: Mapping[str, str]) -> Self:
        """Return a copy with other names of groups."""
        fields = {name: value for name, value in vars(self).items() if name in GROUP_FIELDS}
        return replace(self, **{name: _renamed(value, names) for name, value in fields.items()})


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {names.get(key, key): _renamed(content, names) for key, content in value.items()}
    if isinstance(value, tuple):
        return tuple(_renamed(content, names) for content in value)
    return names.get(value, value) if isinstance(value, str) else value


@dataclass(frozen=True, kw_only=True)
class PublishedCorrelation:
    """Printed Pearson correlations for one corpus."""

    all_cells: float
    windowed: float
    """Only over trials inside the perplexity window."""


@dataclass(frozen=True, kw_only=True)
class Correlation(Analysis):
    """Correlation of two metrics over all trials and inside a window of `y`."""

    x: str = "press_rank"
    y: str = "test_perplexity"
    definitions: tuple[str, ...] = ()
    """Further metrics to correlate with `y`, also with centred rows."""
    windows: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Published closed window of `y` by corpus, for paper scale. Other scales, with other
    perplexities, take the better half of the trials."""
    published: Mapping[str, PublishedCorrelation] = field(default_factory=dict)

    @override
    def without_published(self) -> Self:
        return replace(self, published={}, windows={})


@dataclass(frozen=True, kw_only=True)
class GridMap(Analysis):
    """Tables and heat maps of metrics over two config values (dotted paths)."""

    row: str
    column: str
    metrics: tuple[str, ...] = ("press_rank", "test_perplexity")


@dataclass(frozen=True, kw_only=True)
class GroupTable(Analysis):
    """Mean and standard deviation of metrics by group, next to published ones."""

    metrics: tuple[str, ...]
    groups: tuple[str, ...] = ()
    """Empty: all."""
    title: str = "Results by model"
    source: str = ""
    published: PublishedTable = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AgainstBaselines(Analysis):
    """A metric by group, compared with a baseline."""

    baselines: Mapping[str, str]
    """Baseline by group."""
    metric: str = "test_perplexity"

    def __post_init__(self) -> None:
        """A wrong type is reported now, not after training."""
        if not isinstance(self.baselines, Mapping):
            raise TypeError(
                f"{type(self).__name__}.baselines: must map each group to its baseline, such as "
                f"{{'mos': 'softmax'}}; got {self.baselines!r}"
            )


@dataclass(frozen=True, kw_only=True)
class Differences(AgainstBaselines):
    """Each group's mean below its baseline's (positive: better)."""

    source: str = ""
    published: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """Corpus -> group -> source -> difference."""


@dataclass(frozen=True, kw_only=True)
class Comparison(AgainstBaselines):
    """Significance tests of a metric between each group and its baseline.

    Paired by seed (equal seeds share initial draws and data order), unpaired with fewer than two
    common seeds. All tests are one family for Holm's correction.
    """

    margin: float = 0.0
    """Largest difference that does not matter; tests can show equivalence within it."""
    seeds: tuple[int, ...] | None = None
    """Default: all. Exclude hand-picked seeds: they are not random draws."""
    source: str = ""
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Corpus -> group -> p-value of Student's unpaired test."""


@dataclass(frozen=True, kw_only=True)
class Counts(Analysis):
    """Number of trials by group and value of a metric with few values."""

    metric: str
    values: tuple[float, ...] = ()
    """Shown even if they never occurred."""


@dataclass(frozen=True, kw_only=True)
class Curves(Analysis):
    """Metrics over a setting, a point per trial, next to published curves."""

    x: str
    """Dotted path of a config value, or metric."""
    metrics: tuple[str, ...]
    caption: str
    published: PublishedTable = field(default_factory=dict)

    @property
    @override
    def config_keys(self) -> list[str]:
        """Return `x`, unless it may be a metric, which has no dot."""
        return [self.x] * ("." in self.x)


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Smallest x at which a line's mean reaches a value of a metric."""

    metric: str
    value: float
    at_most: bool = False
    """True: at or below `value`; False: at or above."""


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
    """Empty: all."""
    x_up_to: float | None = None
    """Largest x covered; None for all."""
    lower_is_better: bool = False


@dataclass(frozen=True, kw_only=True)
class Lines(Analysis):
    """Metrics over `x`, with a line per value of `by` and a panel per value of `panel`.

    These are dotted paths of config values; trials without one are excluded. A point is the mean
    over trials that differ only in seed, with minimum and maximum.
    """

    x: str
    """Path of a number."""
    by: str
    metrics: tuple[str, ...]
    panel: str | None = None
    """Default: one panel per metric."""
    reference: str = ""
    """Group without these config values, drawn as a level line."""
    title: str = ""
    logarithmic_x: bool = False
    logarithmic_y: tuple[str, ...] = ()
    """Metrics with a logarithmic axis; positive values only."""
    reaches: tuple[Reach, ...] = ()
    claims: tuple[Claim, ...] = ()
    note: str = ""
    """Remarks on the source and the method."""
    after: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Settings applied after training: prefix of metrics -> line and x. "bent tanh 15 " -> ("bent",
    15.0) puts "bent tanh 15 press_rank" at 15 on the line "bent"."""


@dataclass(frozen=True, kw_only=True)
class Predictions(Analysis):
    """Likeliest next words at contexts, next to published ones."""

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

    The matrix is exact, rounded, with noise, or as learned by each group, whose excess perplexity
    is shown too. Corpora without a known truth give no answer.
    """

    metrics: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Spectra(Analysis):
    """Singular values of each trial's log-P matrix, coloured by Press rank.

    Added to a study without spectra.
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

    The effect is a straight line, or a level per value, pair or triple of values.
    """

    metrics: tuple[str, ...]
    settings: tuple[str, ...]
    """Dotted paths."""
    y: str = "test_perplexity"
    title: str = ""
    claim: str = ""
    """Text with its source."""


@dataclass(frozen=True, kw_only=True)
class JacobianSpectra(Analysis):
    """Mean spectra of layers' Jacobians, and the post's claims."""

    benchmark: str = ""
    """Study that trains such layers."""


@dataclass(frozen=True, kw_only=True)
class PressNoise(Analysis):
    """Ranks under noise and round trips, next to those of a law."""

    @property
    @override
    def has_published(self) -> bool:
        """Always true: SM Tables 15 and 16 print ranks."""
        return True


@dataclass(frozen=True, kw_only=True)
class Audit(Analysis):
    """Printed numbers recomputed from others, and an account of all others."""
