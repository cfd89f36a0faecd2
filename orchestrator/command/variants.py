"""Which variants of a study in the store are meant: a scale, a corpus and a `--set`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.command.options import named_study
from search_spaces.catalog import is_file
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.store import Store, StudyKey


@dataclass(frozen=True, kw_only=True)
class VariantFilter:
    """What variants must have; None takes any."""

    scale: str | None = None
    corpus: str | None = None
    overrides: str | None = None

    def fits(self, key: StudyKey) -> bool:
        """Whether this variant is meant."""
        pairs = ((self.scale, key.scale), (self.corpus, key.corpus), (self.overrides, key.overrides))
        return all(required in (None, value) for required, value in pairs)

    def __str__(self) -> str:
        parts = {"scale": self.scale, "corpus": self.corpus, "--set": self.overrides}
        return "".join(f", {name} {value}" for name, value in parts.items() if value)


def typed_filter(scale: str | None, corpus: str | None, settings: list[str] | None) -> VariantFilter:
    """The filter of the options of these names."""
    from orchestrator.plan import overrides_json, parse_overrides
    from trainables.config import one_name

    overrides = overrides_json(parse_overrides(settings)) if settings else None
    # A folder's path names its corpus here as it does in a run.
    return VariantFilter(scale=scale, corpus=corpus and one_name(Path(corpus).name), overrides=overrides)


def study_name(argument: str) -> str:
    """The name under which the store has a study: a name is taken as it is, a file is asked for its study's."""
    return named_study(argument).name if is_file(argument) else argument


def choose_variant(store: Store, study: str, variants: VariantFilter) -> StudyKey:
    """The variant of a study that is meant; which of several, is said. Raises UserError where none fits.

    Of several that fit, those with a result go first, then those without `--set`, then the one planned last.
    """
    fitting = [s for s in store.studies() if s.key.study == study and variants.fits(s.key)]
    if not fitting:
        raise UserError(f"the store has no study {study!r}{variants}: see what it has with python sweep.py status")
    order = {s.key: (s.counts["done"] > 0, s.key.overrides == "{}", place) for place, s in enumerate(fitting)}
    chosen = max(order, key=order.__getitem__)
    if len(fitting) > 1:
        settings = "" if chosen.overrides == "{}" else f", --set {chosen.overrides}"
        print(
            f"Of {len(fitting)} variants of {study}, this is the one at scale {chosen.scale}, corpus {chosen.corpus}"
            f"{settings}; name another with --scale, --corpus and --set.",
            file=sys.stderr,
        )
    return chosen
