"""From what was typed to plans: the texts they need to know, one for each study and corpus, and what they will take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.command.options import console, named_study
from orchestrator.storage import DataFolder, data_folder_at
from search_spaces import catalog
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.plan import Plan, PlanRequest


def text_folder(
    argument: str | None, corpora: Sequence[str], *, dry_run: bool
) -> tuple[Path | None, DataFolder | None]:
    """The folder of what was typed after --data-dir, and the object store behind it if it is a URL.

    Texts in an object store are copied to this machine, but for a dry run, which says what is not known without.
    """
    folder, data = data_folder_at(argument, corpora)
    if data is not None:
        _bring(data, corpora, dry_run=dry_run)
    elif folder is not None and not folder.is_dir():
        raise UserError(
            f"--data-dir takes a folder that exists, and {folder} is none: name the one where the corpora lie, or "
            "leave it away and they are fetched to data"
        )
    return folder, data


def _bring(data: DataFolder, corpora: Sequence[str], *, dry_run: bool) -> None:
    from trainables.config import is_built_in
    from trainables.corpora import PUBLISHED_CORPORA

    if not dry_run:
        data.fetch()
        return
    url = data.bucket.url
    for name in corpora:
        constant = name in PUBLISHED_CORPORA or is_built_in(name)
        if not constant and "/" not in name and not (data.driver / name).is_dir():
            raise UserError(
                f"--dry-run copies nothing from {url}, and its {name} is not on this machine yet, so that its trials "
                f"are not known: copy it with python sweep.py corpus check {name} --data-dir {url}"
            )
    console(stderr=True).print(f"A dry run copies nothing from {url}: what it has now, a run will see.", soft_wrap=True)


def plans_of(study: str, scale: str, corpora: list[str] | None, request: PlanRequest) -> list[Plan]:
    """Of each study that is meant, a plan for each corpus."""
    from orchestrator.plan import default_corpora, make_plan, scale_named

    size, everything = scale_named(scale), study == catalog.ALL
    plans = []
    for argument in catalog.NAMES if everything else (study,):
        chosen, fitting = named_study(argument), replace(request, argument=argument)
        if everything:
            # Those that tune nothing have no use for how to search, nor others for inputs to measure.
            fitting = replace(fitting, inputs=request.inputs.for_study(chosen))
            if chosen.tuning is None:
                fitting = replace(fitting, search=None, budget=None)
        typed = corpora if chosen.reads_text or not everything else None
        names = dict.fromkeys(typed or default_corpora(chosen, size))
        plans += [make_plan(chosen, size, name, fitting) for name in names]
    return plans


def measured_times(plans: Sequence[Plan], store_url: str, gpus: Sequence[float]) -> list[str]:
    """What trials done so far say about the time of those to run; nothing where there is no store yet."""
    from orchestrator.plan import remaining
    from orchestrator.store import open_store

    try:
        opened = open_store(store_url, create=False)
    except UserError:  # a plan needs no store
        return []
    with opened:
        sentences = []
        for gpu in (True, False):
            alike = [plan for plan, number in zip(plans, gpus, strict=True) if (number > 0) == gpu]
            sentences += remaining(alike, opened, gpu=gpu)
        return sentences


def gpus_of(typed: float | None, plan: Plan) -> float:
    """GPUs of a trial: as typed, else one where models are trained at the scales that are meant for GPUs."""
    if typed is None:
        return 1.0 if plan.scale.name in ("small", "paper") and plan.study.reads_text else 0.0
    from orchestrator.cluster import check_gpus

    check_gpus(typed)
    return typed
