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

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from search_spaces.analyses import *  # noqa: F403
from search_spaces.analyses import Analysis, Correlation
from search_spaces.laws import *  # noqa: F403
from search_spaces.scales import SCALES
from search_spaces.tuning import Tuning
from trainables.config import AnyConfig, CorpusConfig, CustomConfig, output_layer_of
from trainables.errors import UserError


def describe(config: AnyConfig) -> str:
    """Return layer (or kind), settings and seed: "gss c=-1.5 k=2.5 seed=1111"."""
    layer = output_layer_of(config)
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
    trials: Callable[[CorpusConfig], Iterable[AnyConfig]] = lambda corpus: ()  # noqa: ARG005
    """Yields trials at paper scale for a corpus. A tuned study has none."""
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
    deviations: tuple[str, ...] = ()
    """Known differences from the source."""
    corner: Callable[[Sequence[Any]], Sequence[AnyConfig]] | None = None
    """Picks the trials of scale `smoke`; None picks four, spread over the study."""
    quick: Callable[[Sequence[Any]], Sequence[AnyConfig]] | None = None
    """Picks the trials of scale `quick`; None picks all."""
    seeds: Mapping[str, int] = field(default_factory=dict)
    """Number of seeds per trial by scale; default 1. Only for studies that train and have one seed
    per setting."""

    def __post_init__(self) -> None:
        """Raise UserError for a wrong type now, not after training."""
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
        for name in ("trials", "label", "corner", "quick"):
            _require(
                getattr(self, name) is None or callable(getattr(self, name)),
                self,
                name,
                "a function",
            )
        condition = isinstance(self.seeds, Mapping) and all(
            scale in SCALES and isinstance(count, int) and count >= 1
            for scale, count in self.seeds.items()
        )
        _require(
            condition,
            self,
            "seeds",
            f"a number of seeds by scale ({', '.join(SCALES)}), such as {{'quick': 3}}",
        )

    def with_requests(self, change: Callable[[Analysis], Analysis]) -> Study:
        """Return a copy with `change` applied to each `Analysis`; functions stay unchanged."""
        analyses = (change(one) if isinstance(one, Analysis) else one for one in self.analyses)
        return replace(self, analyses=tuple(analyses))


def _require(condition: bool, study: Study, field: str, kind: str) -> None:
    if not condition:
        raise UserError(
            f"study {study.name!r}: {field} must be {kind}; got {getattr(study, field)!r}"
        )
