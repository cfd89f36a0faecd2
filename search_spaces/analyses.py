"""Questions that a study asks about its results.

The trials of a group differ only in the seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from typing_extensions import override

from search_spaces.published import PublishedPredictions, PublishedTable
from trainables.config import LANGUAGE_GOAL, Goal

GROUP_FIELDS = ("baseline", "baselines", "groups", "published", "reference")


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """One question; orchestrator/report/questions.py answers it."""

    goal: Goal = field(default=LANGUAGE_GOAL, compare=False, repr=False)
    """Goal of the study, which fills it in."""

    @property
    def is_own(self) -> bool:
        """True for a question of a user's own study."""
        return self.goal != LANGUAGE_GOAL

    @property
    def has_published(self) -> bool:
        """True if the answer shows published values."""
        return bool(getattr(self, "published", None))

    def with_baselines(self, groups: Sequence[str]) -> Self:
        """Return a copy in which a single baseline is the baseline of each other group."""
        if getattr(self, "baselines", None) != {} or not groups:
            return self
        baseline = getattr(self, "baseline", "") or groups[0]
        others = {group: baseline for group in dict.fromkeys(groups) if group != baseline}
        return replace(self, **dict[str, Any](baselines=others))

    def without_published(self) -> Self:
        """Return a copy without published values."""
        return replace(self, **dict[str, Any](published={})) if hasattr(self, "published") else self

    @property
    def config_keys(self) -> list[str]:
        """Return the config keys that the answer needs."""
        return [value for name, value in vars(self).items() if name in ("row", "column")]

    @property
    def metric_names(self) -> list[str]:
        """Return the metrics of the answer. An `x` without a dot may also be a config key."""
        if self == Correlation():  # every study's default, even if its trials have no such metrics
            return []
        fields = vars(self)
        names = [fields.get(name, "") for name in ("metric", "x", "y")]
        names += [*fields.get("metrics", ()), *fields.get("definitions", ())]
        names += [part.metric for name in ("reaches", "claims") for part in fields.get(name, ())]
        return [name for name in names if name and "." not in name]

    def with_groups(self, names: Mapping[str, str]) -> Self:
        """Return a copy with groups renamed by `names` (old -> new)."""
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
    """Correlation over the trials inside the perplexity window."""


@dataclass(frozen=True, kw_only=True)
class Correlation(Analysis):
    """Correlation of two metrics over all trials and inside a window of `y`."""

    x: str = "press_rank"
    y: str = "test_perplexity"
    definitions: tuple[str, ...] = ()
    """Further rank metrics to correlate with `y`, each also for log P with centred rows."""
    windows: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Published closed interval of `y` by corpus, for paper scale. Other scales use the better half
    of the trials."""
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
    """Mean and standard deviation of metrics by group, next to published values."""

    metrics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Groups in the table; empty for all."""
    title: str = "Results by setting"
    source: str = ""
    published: PublishedTable = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AgainstBaselines(Analysis):
    """A metric of each group, compared with that of a baseline."""

    baselines: Mapping[str, str] = field(default_factory=dict)
    """Baseline of each compared group; empty to compare all groups with `baseline`."""
    baseline: str = ""
    """Baseline of all other groups; by default the study's first group."""
    metric: str = ""

    def __post_init__(self) -> None:
        """Raise TypeError for a wrong type now, not after training."""
        if not isinstance(self.baselines, Mapping):
            raise TypeError(
                f"{type(self).__name__}.baselines: must map each group to its baseline, such as "
                f"{{'mos': 'softmax'}}; got {self.baselines!r}"
            )


@dataclass(frozen=True, kw_only=True)
class Differences(AgainstBaselines):
    """Baseline's mean minus the group's mean (positive: the group is better)."""

    source: str = ""
    published: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """Printed difference by corpus, group and source."""


@dataclass(frozen=True, kw_only=True)
class Comparison(AgainstBaselines):
    """Significance tests of a metric between each group and its baseline.

    Tests are paired by seed: equal seeds share initial draws and data order. With fewer than two
    common seeds, they are unpaired. Holm's correction is over all groups.
    """

    margin: float = 0.0
    """Margin of the equivalence tests: smaller differences do not matter."""
    seeds: tuple[int, ...] | None = None
    """Tested seeds; None for all. Exclude hand-picked seeds: they are not random draws."""
    source: str = ""
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Printed p-value of Student's unpaired test, by corpus and group."""


@dataclass(frozen=True, kw_only=True)
class Counts(Analysis):
    """Number of trials by group and value of a metric with few values."""

    metric: str
    values: tuple[float, ...] = ()
    """Values to show even if no trial has them."""


@dataclass(frozen=True, kw_only=True)
class Curves(Analysis):
    """Metrics over a setting, with a point per trial and published curves."""

    x: str
    """Dotted path of a config value, or a metric."""
    metrics: tuple[str, ...]
    caption: str
    published: PublishedTable = field(default_factory=dict)

    @property
    @override
    def config_keys(self) -> list[str]:
        # Names of metrics have no dot.
        return [self.x] * ("." in self.x)


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Smallest x at which a line's mean metric reaches `value`."""

    metric: str
    value: float
    at_most: bool = False
    """If True, the metric must be at most `value`; if False, at least."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Published statement that one line has a better metric than another."""

    text: str
    metric: str
    better: str
    """Value of `Lines.by` that names the better line; `than` is the other."""
    than: str
    panels: tuple[Any, ...] = ()
    """Panels that the claim covers; empty for all."""
    x_up_to: float | None = None
    """Largest x that the claim covers; None for all x."""
    lower_is_better: bool = False


@dataclass(frozen=True, kw_only=True)
class Lines(Analysis):
    """Metrics over `x`, with a line per value of `by` and a panel per value of `panel`.

    These three are dotted paths of config values; without `by`, there is one line. Trials without
    one of them are excluded. A point is the mean over seeds, with minimum and maximum.
    """

    x: str
    by: str = ""
    metrics: tuple[str, ...] = ()
    panel: str | None = None
    """If None, each metric has one panel."""
    reference: str = ""
    """Group without a value of `x`, drawn as a horizontal line."""
    title: str = ""
    logarithmic_x: bool = False
    logarithmic_y: tuple[str, ...] = ()
    """Metrics drawn on a logarithmic axis, without values of zero or less."""
    reaches: tuple[Reach, ...] = ()
    claims: tuple[Claim, ...] = ()
    note: str = ""
    after: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Settings applied after training: prefix of metric names -> (line, x). With "bent tanh 15 " ->
    ("bent", 15.0), the line "bent" shows "bent tanh 15 press_rank" at x = 15."""


@dataclass(frozen=True, kw_only=True)
class Predictions(Analysis):
    """Likeliest next words at chosen contexts, next to the published ones."""

    source: str = ""
    published: Mapping[str, PublishedPredictions] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Similarity(Analysis):
    """Scores of groups' embeddings on word-similarity benchmarks."""

    published: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """Printed Spearman's rho by corpus, benchmark and group."""


@dataclass(frozen=True, kw_only=True)
class Tuned(Analysis):
    """Trials and best result of a tuning, by side and stage."""


@dataclass(frozen=True, kw_only=True)
class TrueRank(Analysis):
    """Rank metrics compared with the known rank of a generated language's log-P matrix.

    They are measured on the exact, the rounded, the noisy and each learned matrix. The answer has
    each group's excess perplexity, too. Corpora of unknown rank give no answer.
    """

    metrics: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Spectra(Analysis):
    """Singular values of each trial's log-P matrix, coloured by Press rank.

    Reports add this question to studies without it.
    """


@dataclass(frozen=True, kw_only=True)
class GroupSpectra(Spectra):
    """Spectra coloured by group."""


@dataclass(frozen=True, kw_only=True)
class LossByRank(Analysis):
    """Loss (nats) of the least-squares approximation of log P, by its rank and by group."""


@dataclass(frozen=True, kw_only=True)
class RankOverTraining(Analysis):
    """Ranks and validation perplexity by epoch.

    Trials without `evaluation.epoch_rank_contexts` (scales small and paper) give no answer.
    """

    ranks: tuple[str, ...] = ("press_rank", "entropy_rank")
    """Metrics recorded in each epoch; only the first is drawn."""


@dataclass(frozen=True, kw_only=True)
class PartialCorrelations(Analysis):
    """Rank correlations of metrics with `y`, before and after removing the settings' effects.

    An effect is a straight line, or a mean per value or per combination of two or three values.
    """

    metrics: tuple[str, ...]
    settings: tuple[str, ...]
    """Dotted paths of config values."""
    y: str = "test_perplexity"
    title: str = ""
    claim: str = ""
    """Published claim and its source."""


@dataclass(frozen=True, kw_only=True)
class JacobianSpectra(Analysis):
    """Mean spectra of layers' Jacobians, and which of Orhan's claims (2018) hold."""

    benchmark: str = ""
    """Name of a study that trains such layers."""


@dataclass(frozen=True, kw_only=True)
class PressNoise(Analysis):
    """Ranks of a matrix with noise and after SVD round trips, next to predicted ranks."""

    @property
    @override
    def has_published(self) -> bool:
        # SM Tables 15 and 16 print ranks.
        return True


@dataclass(frozen=True, kw_only=True)
class Audit(Analysis):
    """Printed numbers recomputed from others, and a verdict on every printed number."""
