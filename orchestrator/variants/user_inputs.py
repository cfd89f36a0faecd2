"""What a user's command brings to a study's measurements: contexts and benchmarks in place of the
published ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from search_spaces.study import Study
from trainables.config import NAMES, TOP_K, WORD_SIMILARITY, ContextsFile, read_contexts
from trainables.corpora import BenchmarkFolder, read_folder
from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class UserInputs:
    """Nothing, or what `--contexts` and `--benchmarks` named."""

    contexts: ContextsFile | None = None
    benchmarks: BenchmarkFolder | None = None

    def measurements(self, study: Study) -> tuple[str, ...]:
        """The study's measurements with those over published inputs replaced by those over the
        user's own.

        Raises UserError for a study that asks for an unknown measurement, and where what was given
        replaces none."""
        for name in study.measurements:
            if name not in NAMES:
                raise UserError(
                    f"the measurements of a study are among {', '.join(NAMES)}; {study.name} asks "
                    f"for {name!r}: fix it"
                )
        for replaced, (option, _) in self._given.items():
            if replaced not in study.measurements:
                cure = (
                    f", or add {replaced} to the study's measurements" if study.reads_text else ""
                )
                measured = ", ".join(study.measurements) or "nothing of that kind"
                raise UserError(
                    f"{option} is for studies that measure {replaced}, and {study.name} measures "
                    f"{measured}: "
                    f"leave it out{cure}"
                )
        others = {replaced: given.measurement for replaced, (_, given) in self._given.items()}
        return tuple(others.get(name, name) for name in study.measurements)

    def for_study(self, study: Study) -> UserInputs:
        """Those of them that the study measures anything over."""
        return UserInputs(
            contexts=self.contexts if TOP_K in study.measurements else None,
            benchmarks=self.benchmarks if WORD_SIMILARITY in study.measurements else None,
        )

    @property
    def overrides(self) -> dict[str, str]:
        """What makes this another variant of the study, for `StudyKey.overrides`."""
        return {option: f"{given.name} {given.tag}" for option, given in self._given.values()}

    @property
    def _given(self) -> dict[str, tuple[str, ContextsFile | BenchmarkFolder]]:
        """The measurement over published inputs -> the option, and what it named."""
        options = {
            TOP_K: ("--contexts", self.contexts),
            WORD_SIMILARITY: ("--benchmarks", self.benchmarks),
        }
        return {
            name: (option, given) for name, (option, given) in options.items() if given is not None
        }


def read_inputs(contexts: Path | None, benchmarks: Path | None) -> UserInputs:
    """Read what the options named. Raises UserError for a file that is not what it should be."""
    return UserInputs(
        contexts=None if contexts is None else read_contexts(contexts),
        benchmarks=None if benchmarks is None else read_folder(benchmarks),
    )
