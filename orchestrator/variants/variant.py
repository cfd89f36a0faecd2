"""A variant of a study: what a user changed, in the one text form that a store keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from orchestrator.variants.settings import Settings, as_typed
from search_spaces.model_kinds import LSTM, require_model, with_model
from search_spaces.study import Study

NAMED = ("search", "contexts", "benchmarks")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Everything that tells two plans of a study apart at one scale and on one corpus. A larger
    budget, or more seeds, is more of the same variant."""

    settings: Settings = field(default_factory=dict)
    model: str | None = None
    """None for the study's own."""
    search: str | None = None
    """How a tuned study picks its trials; None for the default."""
    contexts: str = ""
    """Name of the user's file, a space, and a tag of its content; empty for the published one."""
    benchmarks: str = ""
    """The same of the user's folder."""

    @classmethod
    def read(cls, text: str) -> Variant:
        """Return the variant with this text; the study as it is written for any other text, since
        a store may hold anything."""
        try:
            content = json.loads(text)
            settings = {key: tuple(values) for key, values in content.pop("settings", {}).items()}
            return cls(settings=settings, **content)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls()

    @property
    def text(self) -> str:
        """Canonical JSON, "{}" for the study as it is written; `StudyKey.overrides` keeps it."""
        changes = {name: value for name, value in vars(self).items() if value}
        return json.dumps(changes, sort_keys=True, separators=(",", ":"))

    @property
    def options(self) -> dict[str, list[str]]:
        """Options of the command line that select this variant, with the values of each."""
        options: dict[str, list[str | None]] = {
            "--model": [self.model],
            "--set": [f"{key}={as_typed(self.settings[key])}" for key in sorted(self.settings)],
            "--search": [self.search],
            "--contexts": [str(self.contexts).rpartition(" ")[0]],
            "--benchmarks": [str(self.benchmarks).rpartition(" ")[0]],
        }
        values = {name: [str(value) for value in given if value] for name, given in options.items()}
        return {name: given for name, given in values.items() if given}

    @property
    def typed(self) -> list[str]:
        """Each option with one value: ["--model transformer", "--set training.epochs=3"]."""
        return [f"{name} {value}" for name, values in self.options.items() for value in values]

    def __str__(self) -> str:
        """The options behind a sentence: ", --set training.epochs=3"; empty if there are none."""
        return "".join(f", {option}" for option in self.typed)

    def study(self, study: Study) -> Study:
        """Return the study with the variant's model in place of its own."""
        return study if self.model is None else with_model(study, self.model)


def chosen_variant(settings: Settings, model: str | None) -> Variant:
    """Return the variant that a reader of a store means: `--set` names its search, contexts and
    benchmarks too. Raises UserError for an unknown model."""
    fields = {name: str(settings[name][0]) for name in NAMED if name in settings}
    rest = {key: values for key, values in settings.items() if key not in NAMED}
    return Variant(settings=rest, model=other_model(model), **fields)


def other_model(model: str | None) -> str | None:
    """Return the model if it is not the studies' own, else None. Raises UserError for an unknown
    one."""
    if model is None or model == LSTM:
        return None
    require_model(model)
    return model
