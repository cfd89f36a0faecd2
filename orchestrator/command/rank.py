"""The command `rank`, for saved matrices and checkpoints."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from orchestrator.command import options
from orchestrator.command.options import print_err, print_records
from orchestrator.words import is_number, some_of
from trainables.errors import UserError

if TYPE_CHECKING:
    from trainables.measurements import RankedFile

STEP = re.compile(r"(?:step|checkpoint|ckpt|iter|epoch)[-_=]?(\d{1,15})", re.IGNORECASE)
FOLDERS_READ = 3
"""Number of parent folders whose names may contain a training step."""
FILES_NAMED = 3
TABLE_HEADINGS = {
    "press_rank": "Press rank",
    "effective_rank_1e-3": "effective rank (1e-3)",
    "effective_rank_1e-4": "(1e-4)",
    "effective_rank_1e-5": "(1e-5)",
    "entropy_rank": "entropy rank",
    "stable_rank": "stable rank",
    "sigma_max": "sigma_max",
    "sigma_min": "sigma_min",
    "log_p_rank_bound": "bound on the rank of log P",
    "kl_rank_bound_1e-1": "KL-rank bound (0.1 nats)",
    "kl_rank_bound_1e-2": "(0.01)",
    "kl_rank_bound_1e-3": "(0.001)",
}


def rank(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="A .npy or .safetensors file, an index file, or a checkpoint's folder. Several "
            "files make one table, sorted by the training steps in their names, such as step1000.",
        ),
    ],
    tensor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name of the output weights. [default: one of the usual names]"
        ),
    ] = None,
    context_norm: Annotated[
        float | None,
        typer.Option(
            metavar="NORM",
            help="Largest norm of a context vector, for KL-rank bounds. [default: from the final "
            "norm layer]",
        ),
    ] = None,
    method: Annotated[
        Literal["gram", "qr"],
        typer.Option(help="gram (fast) or qr (resolves smaller singular values)."),
    ] = "gram",
    eps: Annotated[
        Literal["float32", "float64"],
        typer.Option(help="Precision for the Press rank; the papers use float32."),
    ] = "float32",
    form: options.Format = "table",
) -> None:
    """Measure the ranks of saved matrices or checkpoint heads.

    See docs/look-at-a-checkpoint.md.
    """
    from trainables.measurements import rank_file

    if context_norm is not None and not (0 < context_norm < math.inf):
        raise UserError(f"--context-norm: {context_norm:g} is not a positive number.")
    files, steps = in_training_order(files)
    ranked_files = [
        rank_file(file, tensor=tensor, context_norm=context_norm, method=method, eps=eps)
        for file in files
    ]
    _print_notes(files, ranked_files)
    positions: list[dict[str, Any]] = [{"step": step} for step in steps] or [{} for _ in files]
    records = [
        {**position, "file": str(file), **item.report}
        for position, file, item in zip(positions, files, ranked_files, strict=True)
    ]
    if len(records) > 1:
        _print_several(records, form)
        return
    measures = [
        {"measure": name, "value": _text(value)} for name, value in ranked_files[0].report.items()
    ]
    print_records(measures, ("measure", "value"), form, "rank", files=records)


def in_training_order(files: Sequence[Path]) -> tuple[list[Path], list[int]]:
    """Return the files sorted by training step, and the steps.

    The step is a number in the name of the file, or of the nearest folder. If a step is missing or
    occurs twice, returns the files unsorted and no steps.
    """
    steps = {file: step for file in files if (step := _training_step(file)) is not None}
    if len(set(steps.values())) < len(files):
        return list(files), []
    sorted_files = sorted(files, key=steps.__getitem__)
    return sorted_files, [steps[file] for file in sorted_files]


def _training_step(file: Path) -> int | None:
    names = (file.name, *reversed(file.absolute().parent.parts[-FOLDERS_READ:]))
    steps = [numbers[-1] for numbers in map(STEP.findall, names) if numbers]
    return int(steps[0]) if steps else None


def _print_notes(files: Sequence[Path], ranked_files: Sequence[RankedFile]) -> None:
    for note in dict.fromkeys(note for item in ranked_files for note in item.notes):
        holders = [
            str(file) for file, item in zip(files, ranked_files, strict=True) if note in item.notes
        ]
        prefix = "" if len(holders) == len(files) else f"{some_of(holders, FILES_NAMED)}: "
        print_err(f"{prefix}{note}")


def _print_several(records: Sequence[Mapping[str, Any]], form: options.Form) -> None:
    columns = {name: name for record in records for name in record}
    if form == "table":
        headings = {"step" if "step" in columns else "file": "", **TABLE_HEADINGS}
        columns = {
            name: heading or name
            for name, heading in headings.items()
            if any(record.get(name) is not None for record in records)
        }
    value_of = _text if form == "table" else lambda value: value
    rows = [{name: value_of(record.get(name)) for name in columns} for record in records]
    print_records(rows, columns, form, "rank", files=rows)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if is_number(value) else str(value)
