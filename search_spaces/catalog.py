"""Studies, found by name or file."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from search_spaces.study import Study
from trainables.config import import_file
from trainables.errors import UserError, did_you_mean

NAMES = (
    "gss_grid",
    "seeds",
    "averaging",
    "plif_frozen",
    "mos_k",
    "mos_dropout",
    "fair_capacity",
    "rank_metrics",
    "qualitative",
    "word_similarity",
    "plif_lm",
    "layer_jacobian",
    "layer_gates",
    "press_robustness",
    "published",
    "dirichlet",
    "head_rank",
    "saturation",
    "confounders",
    "softcap",
    "turn_the_rank",
    "spam",
)
MODULES = {"published": "audit"}

ALL = "all"
"""Study name that means all built-in studies, one after another."""


def is_file(name: str) -> bool:
    """Return whether `name` is a file's path."""
    return not is_command(name) and (name.endswith(".py") or "/" in name)


def is_command(name: str) -> bool:
    """Return whether `name` is the definition of a command's study."""
    return name.startswith("{")


def load_study(name: str) -> Study:
    """Return the built-in study `name`, the study in the Python file `name`, or a command's study.

    Raises UserError if it does not exist, or if the file's study has a built-in name.
    """
    studies = (*NAMES, ALL)
    if is_command(name):
        from search_spaces.command_study import command_study

        return command_study(name)
    if is_file(name):
        study = _study_in(import_file(Path(name)), name)
        if study.name in studies:
            raise UserError(
                f"{name}: {study.name!r} is the name of a built-in study. Rename your study: "
                f"results are stored by name."
            )
        return study
    if name not in NAMES:
        # A program's script must not be imported as a study.
        path = Path(f"{name}.py")
        is_own = path.is_file() and "STUDY" in path.read_text(encoding="utf-8", errors="replace")
        hint = f"did you mean {path}? " if is_own else did_you_mean(name, studies)
        raise UserError(
            f"unknown study {name!r}: {hint}"
            f"Choose from {', '.join(studies)}, or give a Python file that defines STUDY"
        )
    return _study_in(importlib.import_module(f"search_spaces.{MODULES.get(name, name)}"), name)


def _study_in(module: ModuleType, name: str) -> Study:
    study = getattr(module, "STUDY", None)
    if not isinstance(study, Study):
        raise UserError(
            f"{name}: must define STUDY, an instance of search_spaces.study.Study; "
            f"got {type(study).__name__.replace('NoneType', 'nothing')}"
        )
    return study
