"""The user's own contexts and benchmarks, which replace the published ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from search_spaces.study import Study
from trainables.config import NAMES, TOP_K, WORD_SIMILARITY, ContextsFile, read_contexts
from trainables.corpora import BenchmarkFolder, read_folder
from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class UserInputs:
    """Contents of `--contexts` and `--benchmarks`."""

    contexts: ContextsFile | None = None
    benchmarks: BenchmarkFolder | None = None

    def measurements(self, study: Study) -> tuple[str, ...]:
        """Return the study's measurements, with the user's inputs in place of the published ones.

        Raises UserError for an unknown measurement, or an input that the study does not use.
        """
        names = list(study.measurements)
        for name in names:
            if name not in NAMES:
                raise UserError(
                    f"study {study.name}: unknown measurement {name!r}. Choose from "
                    f"{', '.join(NAMES)}."
                )
        for option, published_name, user_input in (
            ("--contexts", TOP_K, self.contexts),
            ("--benchmarks", WORD_SIMILARITY, self.benchmarks),
        ):
            if user_input is None:
                continue
            if published_name not in names:
                cure = f", or add {published_name} to the study's measurements" * study.reads_text
                measured_names = ", ".join(names) or "nothing"
                raise UserError(
                    f"{option}: needs a study that measures {published_name}; {study.name} "
                    f"measures {measured_names}. Leave the option out{cure}."
                )
            names[names.index(published_name)] = user_input.measurement
        return tuple(names)

    def for_study(self, study: Study) -> UserInputs:
        """Return the inputs that the study uses."""
        return UserInputs(
            contexts=self.contexts if TOP_K in study.measurements else None,
            benchmarks=self.benchmarks if WORD_SIMILARITY in study.measurements else None,
        )


def read_inputs(contexts: Path | None, benchmarks: Path | None) -> UserInputs:
    """Return the contents of these paths. Raises UserError for an invalid file."""
    return UserInputs(
        contexts=None if contexts is None else read_contexts(contexts),
        benchmarks=None if benchmarks is None else read_folder(benchmarks),
    )
