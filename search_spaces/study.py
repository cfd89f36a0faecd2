"""What a study is: its trials at paper scale, the question behind them, and the analyses that
answer it.

A study file makes one `Study`; everything but its name and its trials, or its tuning, has a
default. A new study:

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
from dataclasses import dataclass, field
from typing import Any

from search_spaces.analyses import *  # noqa: F403
from search_spaces.analyses import Analysis, Correlation
from search_spaces.laws import *  # noqa: F403
from search_spaces.scales import SCALES
from search_spaces.tuning import Tuning
from trainables.config import AnyConfig, CorpusConfig, CustomConfig, output_layer_of
from trainables.errors import UserError


def describe(config: AnyConfig) -> str:
    """The output layer with its settings, and the seed: "gss c=-1.5 k=2.5 seed=1111"; the kind
    where it has none."""
    layer = output_layer_of(config)
    if layer is None:
        return f"{config.kind} seed={config.seed}"
    settings: dict[str, Any] = layer.model_dump(mode="json")
    name = settings.pop("name")
    if isinstance(layer, CustomConfig):
        name, settings = layer.layer, layer.settings
    shown = (
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in settings.items()
    )
    return " ".join([name, *shown, f"seed={config.seed}"])


def group_of(name: str) -> str:
    """What a trial's name says apart from its seed: "mos K=15" of "mos K=15 seed=28"."""
    return re.sub(r" seed=\d+$", "", name)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A set of trials with a question."""

    name: str
    """What is typed after `python sweep.py`."""
    trials: Callable[[CorpusConfig], Iterable[AnyConfig]] = lambda corpus: ()  # noqa: ARG005
    """The trials on a corpus, at paper scale; scales map each config down afterwards. A tuned study
    has none here."""
    tuning: Tuning | None = None
    """How trials are chosen by the results of earlier ones, in place of `trials`."""
    title: str = ""
    question: str = ""
    """One sentence ending in a question mark; the report opens with it."""
    source: str = ""
    """Paper and figure or table that the study reproduces."""
    label: Callable[[Any], str] = describe
    """A short name for a trial. It gets the config as `trials` made it, so that a trial has one
    name at every scale; what is before " seed=" names its group: trials that differ in their seed
    alone. Where different settings have one name, or names that look it, the plan completes them
    with what differs or with the setting's hash."""
    corpora: tuple[str, ...] = ()
    """The corpora of the paper; empty where there is none."""
    reads_text: bool = True
    """False where no trial has a corpus; `trials` then gets one that is called "none"."""
    always_reads: tuple[str, ...] = ()
    """Corpora that trials read besides, whatever the one that is asked for; from the folder of
    `--data-dir`."""
    scaled: bool = True
    """False where no scale changes a trial, and `quick` and `corner` alone say what is less there:
    for a question of sizes."""
    trains: bool = True
    """False where no trial trains or fits anything."""
    measurements: tuple[str, ...] = ("perplexity@1", "spectrum@1")
    analyses: tuple[Analysis | Callable[[Any], Any], ...] = (Correlation(),)
    """What to ask of the results, in the report's order. A function gets a pandas DataFrame of the
    done trials, a row a trial, a column a config value or metric, and returns DataFrames,
    matplotlib figures and sentences to show."""
    deviations: tuple[str, ...] = ()
    """Where the study knowingly differs from its source, a sentence each."""
    corner: Callable[[Sequence[Any]], Sequence[AnyConfig]] | None = None
    """Picks the few trials that scale `smoke` runs; None takes four, spread over the study."""
    quick: Callable[[Sequence[Any]], Sequence[AnyConfig]] | None = None
    """Picks the trials that scale `quick` runs; None takes all."""
    seeds: Mapping[str, int] = field(default_factory=dict)
    """Scale -> how many seeds each trial of `trials` gets there, its own first; 1 where the scale
    is not named. For a study that trains and whose trials repeat no setting themselves."""

    def __post_init__(self) -> None:
        """Raise UserError for a field of another type: it would show only after the training."""
        for name in ("name", "title", "question", "source"):
            _require(isinstance(getattr(self, name), str), self, name, "a text")
        _require(
            re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", self.name) is not None,
            self,
            "name",
            "plain letters, digits and underscores, with dots and hyphens between them, as folders "
            "are called by it",
        )
        for name in ("corpora", "always_reads", "measurements", "deviations"):
            texts = getattr(self, name)
            _require(
                isinstance(texts, (tuple, list)) and all(isinstance(text, str) for text in texts),
                self,
                name,
                "a tuple of texts, such as ('ptb',)",
            )
        right = isinstance(self.analyses, (tuple, list)) and all(
            isinstance(analysis, Analysis)
            or (callable(analysis) and not isinstance(analysis, type))
            for analysis in self.analyses
        )
        _require(
            right,
            self,
            "analyses",
            "a tuple of requests and functions, such as (Correlation(), my_function)",
        )
        for name in ("trials", "label", "corner", "quick"):
            _require(
                getattr(self, name) is None or callable(getattr(self, name)),
                self,
                name,
                "a function",
            )
        right = isinstance(self.seeds, Mapping) and all(
            scale in SCALES and isinstance(count, int) and count >= 1
            for scale, count in self.seeds.items()
        )
        _require(
            right,
            self,
            "seeds",
            f"a number for scales ({', '.join(SCALES)}), such as {{'quick': 3}}",
        )


def _require(right: bool, study: Study, field: str, kind: str) -> None:
    if not right:
        raise UserError(
            f"{field} of a study is {kind}; {study.name!r} has {getattr(study, field)!r}: fix it"
        )
