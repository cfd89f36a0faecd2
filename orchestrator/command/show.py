"""The command `show`."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from typer import Argument

from orchestrator.command import options
from orchestrator.command.options import open_existing, print_document, print_out
from orchestrator.words import short_id, some_of
from trainables.errors import PROGRAM, UserError


def show(
    trial: Annotated[
        str, Argument(metavar="TRIAL", help="The first digits of the trial's id, or its name.")
    ],
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    form: options.TextFormat = "text",
) -> None:
    """Print a trial: state, attempts, causes, config, metrics and folder.

    --format json also prints its epochs.
    """
    from orchestrator.storage import storage_at
    from orchestrator.store import expire_dead_owners
    from trainables.config import flat_values

    location = storage_at(storage)
    with open_existing(store, storage, check=False) as results_store:
        with suppress(UserError):  # a read-only store is shown unchanged
            expire_dead_owners(results_store)
        keys = dict(results_store.studies_of(trial))
        if len(keys) != 1:
            matches = [f"{short_id(one)} ({key.variant})" for one, key in keys.items()]
            raise UserError(
                f"show: {trial!r} fits {some_of(matches, 5) or 'no trial'}. Type the "
                f"id or the name of one trial, from `{PROGRAM} results STUDY`."
            )
        ((trial_id, key),) = keys.items()
        document: dict[str, Any] = {
            **results_store.results(key, keys)[0],
            "measurements": results_store.ended(keys).get(trial_id, {}).get("measurements", {}),
            "attempts": list(map(vars, results_store.attempts(trial_id))),
            "studies": [vars(key) for _, key in results_store.studies_of(trial_id)],
        }
        epochs = results_store.epochs(trial_id)
    folder = location.trial(trial_id)
    document["folder"] = location.in_words_of_user(str(folder.path), folder)
    if form == "json":
        points = [{"epoch": e.epoch, "seconds": e.seconds, "metrics": e.numbers} for e in epochs]
        print_document("trial", **document, epochs=points)
        return
    del document["metrics"]  # each is in its measurement, too
    for name in ("attempts", "studies"):
        document[name] = {str(n): item for n, item in enumerate(document[name], start=1)}
    for name, value in flat_values(document).items():
        if value is not None:
            print_out(f"{name}: {value}")
    if epochs:
        print_out(f"last {epochs[-1]}")
