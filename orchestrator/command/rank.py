"""The command `rank`: the ranks of any saved matrix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, get_args

import typer

from orchestrator.command import options
from orchestrator.command.records import check_format, print_records
from trainables.errors import UserError


def rank(
    file: Annotated[Path, typer.Argument(metavar="FILE.npy")],
    method: Annotated[str, typer.Option("--method", help="gram (fast) or qr (resolves smaller values).")] = "gram",
    eps: Annotated[str, typer.Option("--eps", help="float32 (as published) or float64.")] = "float32",
    form: options.Format = "table",
) -> None:
    """Measure the ranks of any saved matrix."""
    from trainables.measurements import EpsName, Method, rank_of_file

    check_format(form)
    for option, value, choices in (("--method", method, get_args(Method)), ("--eps", eps, get_args(EpsName))):
        if value not in choices:
            raise UserError(f"{option} is one of {', '.join(choices)}; got {value!r}")
    ranks = rank_of_file(file, method=method, eps=eps)  # type: ignore[arg-type]
    if form == "json":
        print(json.dumps(ranks, indent=1))
        return
    records = [
        {"measure": name, "value": value if isinstance(value, str) else f"{value:.6g}"} for name, value in ranks.items()
    ]
    print_records(records, {"measure": "measure", "value": "value"}, form)
