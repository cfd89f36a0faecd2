"""A variant of a study, and its text in the store."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from orchestrator.variants.settings import Settings, as_typed
from search_spaces.model_kinds import LSTM, require_model, with_model
from search_spaces.study import Study

VARIANT_FIELDS = ("search", "contexts", "benchmarks")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Options that change the plan of a study at a given scale and corpus.

    A larger budget or more seeds do not make another variant.
    """

    settings: Settings = field(default_factory=dict)
    model: str | None = None
    """Kind of model that replaces the study's own models."""
    search: str | None = None
    """Search method of a tuned study; None for its default."""
    contexts: str = ""
    """Name of the user's file, a space, and a tag of its content; "" for the published contexts."""
    benchmarks: str = ""

    @classmethod
    def read(cls, text: str) -> Variant:
        """Return the variant that `text` describes; the unchanged study's if `text` is invalid."""
        try:
            content = json.loads(text)
            settings = {key: tuple(values) for key, values in content.pop("settings", {}).items()}
            return cls(settings=settings, **content)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls()

    @property
    def text(self) -> str:
        """The variant as JSON, as in `StudyKey.overrides`; "{}" for the unchanged study."""
        changes = {name: value for name, value in vars(self).items() if value}
        return json.dumps(changes, sort_keys=True, separators=(",", ":"))

    @property
    def options(self) -> dict[str, list[str]]:
        """Return the command-line options that select this variant."""
        options = {
            "--model": [str(self.model or "")],
            "--set": [f"{key}={as_typed(self.settings[key])}" for key in sorted(self.settings)],
            "--search": [str(self.search or "")],
            "--contexts": [str(self.contexts).rpartition(" ")[0]],
            "--benchmarks": [str(self.benchmarks).rpartition(" ")[0]],
        }
        return {name: texts for name, texts in options.items() if any(texts)}

    @property
    def typed(self) -> list[str]:
        """Return the options as typed: ["--model transformer", "--set training.epochs=3"]."""
        return [f"{name} {value}" for name, values in self.options.items() for value in values]

    def __str__(self) -> str:
        """Return the options to append to a sentence: ", --set training.epochs=3", or ""."""
        return "".join(f", {option}" for option in self.typed)

    def study(self, study: Study) -> Study:
        """Return the study with the variant's model."""
        return study if self.model is None else with_model(study, self.model)


def chosen_variant(settings: Settings, model: str | None) -> Variant:
    """Return the variant that these options select in the store.

    `--set` also selects search, contexts and benchmarks. Raises UserError for an unknown model.
    """
    fields = {name: str(settings[name][0]) for name in VARIANT_FIELDS if name in settings}
    study_settings = {key: values for key, values in settings.items() if key not in VARIANT_FIELDS}
    return Variant(settings=study_settings, model=other_model(model), **fields)


def other_model(model: str | None) -> str | None:
    """Return `model`; None for LSTM, the default. Raises UserError for an unknown model."""
    if model is None or model == LSTM:
        return None
    require_model(model)
    return model
