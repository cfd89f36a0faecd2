"""Contents of the store as data frames."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis import flatten
from orchestrator.command import VariantFilter, no_study, open_existing, study_name
from orchestrator.store import Store, StudyKey
from orchestrator.variants import chosen_variant, setting_values
from trainables.corpora import corpus_name
from trainables.errors import UserError


def results(study: str | None = None, **selection: Any) -> pd.DataFrame:
    """Return a row per trial in plan order, with the columns of `sweep.py results --format csv`.

    The first columns are `study`, `scale`, `corpus`, `overrides` (the changes of `--set`, as JSON)
    and `group` (the trial's name without its seed). A missing number is NaN.

    `study` is a name or a file, or None for all studies. `selection` may have:

    - `scale`, and `corpus` (one or a list).
    - `overrides`, such as {"training.epochs": 3} or {"training.epochs": [3, 5]}; {} for unchanged
      studies.
    - `model`: "transformer" for runs with `--model transformer`.
    - `storage` (default "results") and `store`, as on the command line.

    Raises UserError if the store or variant does not exist.
    """
    with _variants(study, **selection) as (store, keys):
        return results_of(store, keys)


def epochs(study: str | None = None, **selection: Any) -> pd.DataFrame:
    """Return a row per epoch of each trial. Arguments and errors are those of `results`.

    Columns: the variant, `trial_id`, `name`, `group`, `epoch`, `tokens`, `train_loss` and
    `valid_loss` (nats per token), `valid_perplexity`, `averaging` (whether weights were averaged),
    `seconds`, `press_rank`, `entropy_rank`, `kl_rank` (NaN if not measured), `train_perplexity`.
    Trials of your own code have the metrics that they report.
    """
    with _variants(study, **selection) as (store, keys):
        rows = [
            {**trial, **epoch.model_dump(), **epoch.numbers}
            for key in keys
            for trial, trial_epochs in _by_trial(store, key, store.epochs_by_trial(key))
            for epoch in trial_epochs
        ]
    return pd.DataFrame(rows, columns=None if rows else [*TRIAL, "epoch"])


def spectra(study: str | None = None, **selection: Any) -> pd.DataFrame:
    """Return a row per singular value of each trial. Arguments and errors are those of `results`.

    The values are in nats, of the log-P matrix or of another matrix that the trial decomposes.
    Columns: the variant, `trial_id`, `name`, `group`, `index` from 1, and `singular_value` in
    decreasing order.
    """
    with _variants(study, **selection) as (store, keys):
        frames = [
            pd.DataFrame({**trial, "index": np.arange(1, len(sigma) + 1), "singular_value": sigma})
            for key in keys
            for trial, sigma in _by_trial(store, key, store.spectra(key))
        ]
    return (
        pd.concat(frames, ignore_index=True)
        if frames
        else pd.DataFrame(columns=[*TRIAL, "index", "singular_value"])
    )


TRIAL = ("study", "scale", "corpus", "overrides", "trial_id", "name", "group")


@contextmanager
def _variants(
    study: str | None,
    *,
    scale: str | None = None,
    corpus: str | Path | Sequence[str | Path] | None = None,
    overrides: Mapping[str, Any] | None = None,
    model: str | None = None,
    storage: str | Path = "results",
    store: str | Path | None = None,
) -> Iterator[tuple[Store, list[StudyKey]]]:
    corpora = (corpus,) if corpus is None or isinstance(corpus, str | os.PathLike) else corpus
    chosen = chosen_variant(plain_settings(overrides or {}), model)
    text = None if overrides is None and model is None else chosen.text
    variants = [
        VariantFilter(
            scale=scale, corpus=corpus_name(os.fspath(one)) if one else None, overrides=text
        )
        for one in corpora
    ]
    name = study and study_name(study_argument(study))
    with open_existing(store, storage) as results_store:
        all_keys = [summary.key for summary in results_store.studies()]
        keys = [
            key
            for key in all_keys
            if name in (None, key.study) and any(variant.fits(key) for variant in variants)
        ]
        if not keys and name is not None:
            raise no_study(name, all_keys, variants[0])
        if not keys:
            raise UserError(
                f"the store has no study{variants[0]}. Drop a condition, or run a study first."
            )
        yield results_store, keys


def study_argument(study: object) -> str:
    """Return a study's name or path. Raises UserError for anything else, such as a Study."""
    if not isinstance(study, str | os.PathLike):
        raise UserError(
            f"study: must be a name or a Python file that defines STUDY; got a "
            f"{type(study).__name__}. Write the study to a file and give its path."
        )
    return os.fspath(study)


def plain_settings(settings: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return each setting's values as plain numbers and texts; a list is several values.

    Raises UserError if `settings` is not a dict.
    """
    if not isinstance(settings, Mapping):
        raise UserError(
            f'settings must be a dict such as {{"training.epochs": 3}}; got {settings!r}'
        )
    plain_values = {key: _plain(value) for key, value in settings.items()}
    return {
        key: setting_values(key, value if isinstance(value, list) else [value])
        for key, value in plain_values.items()
    }


def _plain(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    return (
        [_plain(one) for one in value]
        if isinstance(value, list | tuple | range | set | frozenset)
        else value
    )


def results_of(store: Store, keys: Sequence[StudyKey]) -> pd.DataFrame:
    """Return a row per trial of these study variants."""
    frames = [flatten(store.results(key)).of_variant(key).frame() for key in keys]
    return pd.concat(frames, ignore_index=True)


def _by_trial(
    store: Store, key: StudyKey, values: Mapping[str, Any]
) -> Iterator[tuple[dict[str, str], Any]]:
    flat = flatten(store.results(key)).of_variant(key)
    for record, group in zip(flat.records, flat.groups, strict=True):
        if record["trial_id"] in values:
            yield (
                {**{name: record[name] for name in TRIAL[:-1]}, "group": group},
                values[record["trial_id"]],
            )
