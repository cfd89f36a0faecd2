"""From a study, a scale and a corpus to the list of trials, each with its identity. Imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.plan.estimates import Estimate, estimate
from orchestrator.plan.overrides import apply_overrides, overrides_json
from orchestrator.plan.trial_names import trial_names
from orchestrator.plan.tuning.tuning_plan import DEFAULT_SEARCH, TuningPlan, plan_tuning, refuse_tuned
from orchestrator.plan.user_inputs import OwnInputs
from orchestrator.store.records import Place, PlannedTrial, StudyKey
from search_spaces.scales import SCALES, Scale, apply_scale, smoke_corner
from search_spaces.study import Curves, GridMap, Study
from trainables.config import MIN_STREAM, CorpusConfig, TrialConfig
from trainables.config.dotted_keys import flat_values
from trainables.config.kinds import KINDS, AnyConfig, read_config
from trainables.corpora import NO_TEXT, CorpusIdentity, identity, resolve_argument
from trainables.corpora.folders import DEFAULT_DATA_DIR
from trainables.errors import UserError, did_you_mean, first_line
from trainables.parameters import parameter_count


@dataclass(frozen=True, kw_only=True)
class TrialPlan:
    """One trial with what can be said of it before it runs."""

    name: str
    config: AnyConfig
    trial_id: str
    parameters: int
    estimate: Estimate
    place: Place | None = None
    """Of a trial of a tuning."""

    def planned(self) -> PlannedTrial:
        """The trial as the store takes it."""
        config = self.config.model_dump(mode="json")
        return PlannedTrial(trial_id=self.trial_id, name=self.name, config=config, place=self.place)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All trials of one variant of a study."""

    study: Study
    argument: str
    """The study as it was typed: its name or its file."""
    scale: Scale
    corpus: CorpusIdentity
    data_dir: Path | None
    """Where the corpus lies; None for a built-in one."""
    benchmarks_dir: Path
    """Where the folder of published word-similarity benchmarks lies, or is to be fetched to."""
    key: StudyKey
    measurements: tuple[str, ...]
    """The study's, those over published inputs replaced where the user brought others."""
    own: OwnInputs
    trials: tuple[TrialPlan, ...]
    """Of a tuned study, those that no result is needed for."""
    tuning: TuningPlan | None = None

    @property
    def total(self) -> int:
        """How many trials there are in the end."""
        return len(self.trials) if self.tuning is None else self.tuning.total


def scale_named(name: str) -> Scale:
    """The scale of that name. Raises UserError with the valid ones."""
    if name not in SCALES:
        raise UserError(f"unknown scale {name!r}: {did_you_mean(name, SCALES)}Choose from {', '.join(SCALES)}")
    return SCALES[name]


def default_corpora(study: Study, scale: Scale) -> tuple[str, ...]:
    """Where none is named: "none" for a study that reads no text, the built-in text for the small machines' scales,
    else all corpora of the paper."""
    if not study.reads_text:
        return (NO_TEXT.name,)
    return ("pydocs",) if scale.name in ("smoke", "quick") else study.corpora or ("ptb",)


def make_plan(
    study: Study,
    scale: Scale,
    corpus: str,
    data_dir: Path | None,
    overrides: Mapping[str, Any],
    *,
    argument: str | None = None,
    own: OwnInputs | None = None,
    search: str | None = None,
    budget: int | None = None,
) -> Plan:
    """Resolve every trial of the study. Raises UserError for a study, corpus or override that makes no sense.

    `search` and `budget` are how a tuned study picks the trials of its stage 2; None takes the default.
    """
    own = own or OwnInputs()
    measurements = own.measurements(study)
    benchmarks_dir = (data_dir or DEFAULT_DATA_DIR).resolve()
    known, data_dir = _corpus(study, corpus, data_dir)
    content = CorpusConfig(name=known.name, sha256=known.sha256)
    tuning = _tuning_plan(study, scale, content, overrides, search=search, budget=budget)
    if tuning is not None:
        trials = tuple(_trial_plan(name, config, known, place) for name, place, config in tuning.certain())
    else:
        named = _named_trials(study, scale, content, overrides)
        trials = tuple(_trial_plan(name, config, known) for name, config in named)
    _refuse_duplicates(study, trials, overrides)
    _refuse_unknown_keys(study, trials)
    # Another way to search is another variant of the study; a larger budget is more of the same one.
    searched = {} if tuning is None or tuning.search == DEFAULT_SEARCH else {"search": tuning.search}
    key = StudyKey(
        study=study.name,
        scale=scale.name,
        corpus=known.name,
        overrides=overrides_json({**overrides, **own.overrides, **searched}),
    )
    return Plan(
        study=study,
        argument=argument or study.name,
        scale=scale,
        corpus=known,
        data_dir=data_dir,
        benchmarks_dir=benchmarks_dir,
        key=key,
        measurements=measurements,
        own=own,
        trials=trials,
        tuning=tuning,
    )


def _corpus(study: Study, corpus: str, data_dir: Path | None) -> tuple[CorpusIdentity, Path | None]:
    if not study.reads_text:
        if corpus != NO_TEXT.name:
            if study.always_reads:
                texts = " and ".join(study.always_reads)
                raise UserError(
                    f"--corpus names the text of a study that takes any, and {study.name} always reads {texts}: leave "
                    "it away, and give their folder with --data-dir"
                )
            raise UserError(f"--corpus is for studies that read text, and {study.name} reads none: leave it away")
        return NO_TEXT, None
    name, data_dir = resolve_argument(corpus, data_dir)
    return identity(name, data_dir=data_dir), data_dir


def _named_trials(
    study: Study, scale: Scale, corpus: CorpusConfig, overrides: Mapping[str, Any]
) -> list[tuple[str, AnyConfig]]:
    written = _trials_of(study, corpus)
    configs = _at_scale(study, scale, written)
    resolved = apply_overrides([apply_scale(scale, config) for config in configs], overrides)
    # As the study has written them, the same at every scale; but what fits the scale's config need not fit the paper's.
    named = _overridden(configs, overrides, resolved)
    with _blaming(study, "its label function"):
        names = trial_names(study, named, named if configs is written else _overridden(written, overrides, named))
    return list(zip(names, resolved, strict=True))


def _overridden(
    configs: Sequence[AnyConfig], overrides: Mapping[str, Any], otherwise: Sequence[AnyConfig]
) -> Sequence[AnyConfig]:
    try:
        return apply_overrides(configs, overrides)
    except UserError:
        return otherwise


def trials_at(study: Study, scale: Scale, corpus: CorpusConfig) -> list[AnyConfig]:
    """The trials of a study that tunes nothing, as the scale has them. Raises UserError where it cannot make them."""
    return [apply_scale(scale, config) for config in _at_scale(study, scale, _trials_of(study, corpus))]


def _at_scale(study: Study, scale: Scale, written: Sequence[AnyConfig]) -> Sequence[AnyConfig]:
    """Those of the trials that the scale runs, as the study has written them."""
    if scale.name != "smoke":
        return written
    with _blaming(study, "its corner function"):
        return list((study.corner or smoke_corner)(written))


def _tuning_plan(
    study: Study,
    scale: Scale,
    corpus: CorpusConfig,
    overrides: Mapping[str, Any],
    *,
    search: str | None,
    budget: int | None,
) -> TuningPlan | None:
    if study.tuning is None:
        for option, value in (("--search", search), ("--budget", budget)):
            if value is not None:
                raise UserError(f"{option} is for studies that tune, and {study.name} tunes nothing: leave it away")
        return None

    def resolve(config: TrialConfig) -> TrialConfig:
        [resolved] = apply_overrides([apply_scale(scale, config)], overrides)
        assert isinstance(resolved, TrialConfig), "a tuning is over language models"
        return resolved

    refuse_tuned(study.tuning, overrides)
    with _blaming(study, "its tuning"):
        # All sides at once: what only some of them have is refused with a sentence that says so.
        apply_overrides([apply_scale(scale, base(corpus)) for base in study.tuning.sides.values()], overrides)
        return plan_tuning(study.tuning, corpus, scale.name, resolve, search=search, budget=budget)


def _trials_of(study: Study, corpus: CorpusConfig) -> list[AnyConfig]:
    with _blaming(study, "its trials function"):
        configs = list(study.trials(corpus))
    if not configs:
        raise UserError(f"a study needs at least one trial; {study.name} has none for the corpus {corpus.name}")
    wrong = next((config for config in configs if not isinstance(config, KINDS)), None)
    if wrong is not None:
        raise UserError(
            f"the trials of a study are configs of {', '.join(kind.__name__ for kind in KINDS[:-1])} or "
            f"{KINDS[-1].__name__}; {study.name} yields a {type(wrong).__name__}: mend it"
        )
    with _blaming(study, "its trials function"):
        # What is run is read from JSON; a config made past validation would be another trial there than here.
        return [read_config(config.model_dump(mode="json", warnings="error")) for config in configs]


@contextmanager
def _blaming(study: Study, part: str) -> Iterator[None]:
    """A study is the user's code: whatever it raises is said as a fault of that part of it."""
    try:
        yield
    except UserError:
        raise  # says already what is wrong and what to do
    except Exception as error:
        finding = _first(error) if isinstance(error, ValidationError) else first_line(str(error))
        raise UserError(
            f"the study {study.name} cannot make its trials: {type(error).__name__}: {finding}; mend {part}"
        ) from error


def _first(error: ValidationError) -> str:
    """The first of its findings, after the key that it is about."""
    finding = error.errors()[0]
    return ": ".join([*([".".join(map(str, finding["loc"]))] if finding["loc"] else []), finding["msg"]])


def _trial_plan(name: str, config: AnyConfig, corpus: CorpusIdentity, place: Place | None = None) -> TrialPlan:
    if isinstance(config, TrialConfig):
        _require_text(config, corpus)
    return TrialPlan(
        name=name,
        config=config,
        trial_id=config.trial_id,
        parameters=_parameters(config, corpus),
        estimate=estimate(config, corpus),
        place=place,
    )


def _parameters(config: AnyConfig, corpus: CorpusIdentity) -> int:
    if isinstance(config, TrialConfig):
        return parameter_count(config, corpus.limited_vocabulary_size(config.corpus.vocabulary_limit))
    return config.parameters


def _require_text(config: TrialConfig, corpus: CorpusIdentity) -> None:
    """Raise UserError where a split is too short for its batch: each parallel stream needs MIN_STREAM tokens."""
    evaluation = config.evaluation
    for split, tokens, batch in (
        ("train", corpus.train_tokens, config.training.batch_size),
        (
            "valid",
            min(corpus.valid_tokens, evaluation.valid_tokens or corpus.valid_tokens),
            evaluation.valid_batch_size,
        ),
        ("test", min(corpus.test_tokens, evaluation.test_tokens or corpus.test_tokens), evaluation.test_batch_size),
    ):
        if tokens < MIN_STREAM * batch:
            raise UserError(
                f"a batch of {batch} needs at least {MIN_STREAM * batch} tokens, but the {split} text of "
                f"{corpus.name} has {tokens}; use a longer corpus or a smaller batch size"
            )


def _refuse_unknown_keys(study: Study, trials: Sequence[TrialPlan]) -> None:
    """A request over a config value that no trial has would answer nothing, and only after the training."""
    maps = [request for request in study.analyses if isinstance(request, GridMap)]
    wanted = [key for request in maps for key in (request.row, request.column)]
    # Without a dot it may be a metric, which nobody knows before.
    wanted += [request.x for request in study.analyses if isinstance(request, Curves) and "." in request.x]
    known = {key for trial in trials for key in flat_values(trial.config.model_dump(mode="json"))} if wanted else set()
    for key in wanted:
        if key not in known:
            raise UserError(
                f"an analysis of {study.name} is over {key!r}, and no trial has that key: "
                f"{did_you_mean(key, known)}Keys are those of the config, as --dry-run --format json "
                "prints it; mend its analyses"
            )


def _refuse_duplicates(study: Study, trials: Sequence[TrialPlan], overrides: Mapping[str, Any]) -> None:
    mend = "leave away the --set of what its trials differ in" if overrides else "drop one"
    names: dict[str, str] = {}
    for trial in trials:
        if trial.trial_id in names:
            earlier = names[trial.trial_id]
            same = "twice" if earlier == trial.name else f"and {earlier!r} as one and the same"
            raise UserError(f"every trial of a study is different; {study.name} plans {trial.name!r} {same}: {mend}")
        names[trial.trial_id] = trial.name
