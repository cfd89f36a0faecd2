"""Definition of a study.

Only the name and the trials (or a tuning) have no default:

    from search_spaces.study import Study
    from trainables.config import CorpusConfig, GssConfig, TrialConfig

    def trials(corpus: CorpusConfig):
        for k in (1.0, 2.0, 3.0):
            yield TrialConfig(seed=1, corpus=corpus, output_layer=GssConfig(c=0.0, k=k))

    STUDY = Study(name="slopes", trials=trials)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from search_spaces.analyses import *  # noqa: F403
from search_spaces.analyses import Analysis, Comparison, Correlation, GroupTable, Tuned
from search_spaces.laws import *  # noqa: F403
from search_spaces.scales import FULL, SCALES, Scale
from search_spaces.spaces import Search
from search_spaces.tuning import Tuning
from trainables.config import (
    LANGUAGE_GOAL,
    USER,
    AnyConfig,
    Command,
    CustomConfig,
    Goal,
    Mode,
    Trainable,
    output_layer_of,
)
from trainables.errors import UserError, did_you_mean


def describe(config: AnyConfig) -> str:
    """Return layer (or kind), settings and seed: "gss c=-1.5 k=2.5 seed=1111"."""
    layer = output_layer_of(config)
    if isinstance(config, Trainable | Command):
        return f"{config.family} seed={config.seed}"
    if layer is None:
        return f"{config.kind} seed={config.seed}"
    settings: dict[str, Any] = layer.model_dump(mode="json")
    name = settings.pop("name")
    if isinstance(layer, CustomConfig):
        name, settings = layer.layer, layer.settings
    values = (
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in settings.items()
    )
    return " ".join([name, *values, f"seed={config.seed}"])


def group_of(name: str) -> str:
    """Return a trial's name without its seed: "mos K=15" for "mos K=15 seed=28"."""
    return re.sub(r" seed=\d+$", "", name)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A question, trials at paper scale that answer it, and analyses of their results."""

    name: str
    """Used in commands and folder names."""
    trials: Callable[..., Iterable[AnyConfig]] = lambda corpus: ()  # noqa: ARG005
    """Yields trials at paper scale for a corpus. A tuned study has none. A study of your own code
    has a function without arguments, such as a `Grid`, or a `Search`."""
    tuning: Tuning | None = None
    """Replaces `trials` if later trials depend on earlier results."""
    title: str = ""
    question: str = ""
    """Question that opens the report and ends in a question mark."""
    source: str = ""
    """Paper, and figure or table."""
    label: Callable[[Any], str] = describe
    """Names a trial by its final config, after scale and `--set`. The text before " seed=" is the
    group, whose trials differ only in seed. The plan lengthens names that are not unique. Analyses
    use the group names of scale paper."""
    corpora: tuple[str, ...] = ()
    """Corpora that the paper uses."""
    reads_text: bool = True
    """If False, `trials` gets a corpus named "none"."""
    always_reads: tuple[str, ...] = ()
    """Corpora that trials also read from `--data-dir`, at any `--corpus`."""
    scaled: bool = True
    """If False, scales change no trial; only `quick` and `corner` reduce the work."""
    trains: bool = True
    """False if no trial trains or fits."""
    measurements: tuple[str, ...] = ("perplexity@1", "spectrum@1")
    analyses: tuple[Analysis | Callable[[Any], Any], ...] = (Correlation(),)
    """Analyses in the report's order. A function gets a DataFrame of done trials (columns: config
    values and metrics). It returns DataFrames, matplotlib figures and sentences."""
    metric: str = ""
    """Metric that the study improves. Analyses without a metric use it."""
    mode: Mode = "min"
    """`max` if higher values of the metric are better."""
    unit: str = ""
    """Unit of the metric, for reports."""
    scales: Mapping[str, Mapping[str, Any]] | None = None
    """For a study of your own code: by name of a scale, the settings that differ from those of
    scale `full`, such as {"smoke": {"epochs": 1}}."""
    deviations: tuple[str, ...] = ()
    """Known differences from the source."""
    corner: Callable[[Sequence[Any]], Sequence[AnyConfig]] | None = None
    """Picks the trials of scale `smoke`; None picks four, spread over the study."""
    quick: Callable[[Sequence[Any]], Sequence[AnyConfig]] | None = None
    """Picks the trials of scale `quick`; None picks all."""
    seeds: int | Mapping[str, int] = field(default_factory=dict)
    """Number of seeds per trial, of all scales or by scale; default 1. Only for studies that train
    and have one seed per setting."""

    def __post_init__(self) -> None:
        """Raise UserError for a wrong type now, not after training."""
        if isinstance(self.trials, Search):
            search = self.trials
            self._set(trials=lambda _: (), scales=self.scales or {})
            self._set(tuning=search.tuning(self.goal, self.seeds_at(FULL.name)))
            if self.analyses == (Correlation(),):
                self._set(analyses=(Tuned(), GroupTable(groups=(f"{search.side} final",))))
        elif callable(self.trials) and _takes_nothing(self.trials):
            trials = self.trials
            self._set(trials=lambda _: trials(), scales=self.scales or {})
        if self.scales is not None:
            self._set_own_defaults()
        for name in ("name", "title", "question", "source"):
            _require(isinstance(getattr(self, name), str), self, name, "a string")
        _require(
            re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", self.name) is not None,
            self,
            "name",
            "letters, digits, '_', '.' and '-', not '.' or '-' first, because it names folders",
        )
        for name in ("corpora", "always_reads", "measurements", "deviations"):
            texts = getattr(self, name)
            _require(
                isinstance(texts, (tuple, list)) and all(isinstance(text, str) for text in texts),
                self,
                name,
                "a tuple of strings, such as ('ptb',)",
            )
        condition = isinstance(self.analyses, (tuple, list)) and all(
            isinstance(analysis, Analysis)
            or (callable(analysis) and not isinstance(analysis, type))
            for analysis in self.analyses
        )
        _require(
            condition,
            self,
            "analyses",
            "a tuple of analyses and functions, such as (Correlation(), my_function)",
        )
        self._set(analyses=tuple(map(self._with_metric, self.analyses)))
        for name in ("trials", "label", "corner", "quick"):
            _require(
                getattr(self, name) is None or callable(getattr(self, name)),
                self,
                name,
                "a function",
            )
        counts = {FULL.name: self.seeds} if isinstance(self.seeds, int) else self.seeds
        condition = isinstance(counts, Mapping) and all(
            scale in (*self.scale_names, FULL.name) and isinstance(count, int) and count >= 1
            for scale, count in counts.items()
        )
        _require(
            condition,
            self,
            "seeds",
            f"a number of seeds, or numbers by scale ({', '.join(self.scale_names)}), such as "
            f"{{{self.scale_names[0]!r}: 3}}",
        )

    def seeds_at(self, scale: str) -> int:
        """Return the number of seeds per trial at a scale."""
        return self.seeds if isinstance(self.seeds, int) else self.seeds.get(scale, 1)

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _set_own_defaults(self) -> None:
        _require(
            isinstance(self.metric, str) and bool(self.metric),
            self,
            "metric",
            "the name of a metric that the trials return",
        )
        _require(self.mode in get_args(Mode), self, "mode", "'min' or 'max'")
        self._set(reads_text=False, corpora=(), measurements=(USER,))
        if self.analyses == (Correlation(),):
            self._set(analyses=(Comparison(), GroupTable()))

    def _with_metric(self, analysis: Any) -> Any:
        """Fill in the study's goal and metric."""
        if not isinstance(analysis, Analysis):
            return analysis
        goal, fields = self.goal, dict[str, Any](goal=self.goal)
        if getattr(analysis, "metric", None) == "":
            fields["metric"] = goal.metric
        if getattr(analysis, "metrics", None) == ():
            fields["metrics"] = (goal.metric,)
        return replace(analysis, **fields)

    @property
    def is_own(self) -> bool:
        """True for a study of a user's own code."""
        return self.scales is not None

    @property
    def goal(self) -> Goal:
        """Return the metric that the study improves, and how."""
        return Goal(self.metric, self.mode, self.unit) if self.metric else LANGUAGE_GOAL

    @property
    def scale_names(self) -> tuple[str, ...]:
        """Return the names of the study's scales."""
        return tuple(SCALES) if self.scales is None else (*self.scales, FULL.name)

    def scale(self, name: str | None = None) -> Scale:
        """Return the scale of this name; by default quick, or full for a user's own code.

        Raises UserError for another name.
        """
        name = name or ("quick" if self.scales is None else FULL.name)
        if name not in self.scale_names:
            raise UserError(
                f"--scale: {self.name} has no scale {name!r}: "
                f"{did_you_mean(name, self.scale_names)}Choose from {', '.join(self.scale_names)}."
            )
        return SCALES[name] if self.scales is None else replace(FULL, name=name)

    def with_requests(self, change: Callable[[Analysis], Analysis]) -> Study:
        """Return a copy with `change` applied to each `Analysis`; functions stay unchanged."""
        analyses = (change(one) if isinstance(one, Analysis) else one for one in self.analyses)
        return replace(self, analyses=tuple(analyses))


def _takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        return not inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _require(condition: bool, study: Study, field: str, kind: str) -> None:
    if not condition:
        raise UserError(
            f"study {study.name!r}: {field} must be {kind}; got {getattr(study, field)!r}"
        )
