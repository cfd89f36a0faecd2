"""Synthetic results of a grid study, shaped like real results."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.report import ReportResult, build_report
from orchestrator.store.records import StudyKey
from search_spaces.study import Correlation, GridMap, PublishedCorrelation, Study, describe
from trainables.config import CorpusConfig, GssConfig, TrialConfig
from trainables.config.kinds import output_layer_of
from trainables.measurements import Spectrum, rank_report
from trainables.trial_folder.outcome import EpochMetrics

KEY = StudyKey(study="made_up", scale="quick", corpus="pydocs")
C_VALUES = [-2 + 0.5 * i for i in range(9)]
K_VALUES = [1.25 + 0.25 * i for i in range(8)]


def trial_row(
    name: str, state: Any = "done", *, config: Any = None, **metrics: Any
) -> dict[str, Any]:
    fields = {"trial_id": name, "name": name, "state": state, "attempt": 1, "cause": None}
    return {**fields, "config": config or {}, "metrics": metrics}


def done_trial(group: str, seed: int, **metrics: float) -> dict[str, Any]:
    return trial_row(f"{group} seed={seed}", config={"seed": seed}, **metrics)


def grid_trials(corpus: CorpusConfig) -> Iterable[TrialConfig]:
    """Yield the 72 trials of the paper's Fig. 2."""
    for c in C_VALUES:
        for k in K_VALUES:
            yield TrialConfig(seed=1111, corpus=corpus, output_layer=GssConfig(c=c, k=k))


def training(
    ranks: Iterable[float],
    losses: Iterable[float],
    *,
    averaged_from: int | None = None,
    jump: float = 1.0,
) -> list[EpochMetrics]:
    """Return epochs with these Press ranks and losses.

    Each entropy rank is a tenth of the Press rank, but at least 1. From epoch `averaged_from` on,
    the ranks are multiplied by `jump`, and `jump` is subtracted from the validation losses.
    """
    epochs = []
    for number, (rank, loss) in enumerate(zip(ranks, losses, strict=True), 1):
        averaging = averaged_from is not None and number >= averaged_from
        press_rank = int(rank * jump if averaging else rank)
        epochs.append(
            EpochMetrics(
                epoch=number,
                tokens=1000 * number,
                train_loss=loss,
                valid_loss=loss - jump if averaging else loss,
                averaging=averaging,
                seconds=1.0,
                press_rank=press_rank,
                entropy_rank=max(1.0, press_rank / 10),
            )
        )
    return epochs


STUDY = Study(
    name="made_up",
    title="Made-up rank and perplexity",
    question="Is the rank of log P correlated with test perplexity?",
    source="Fig. 2",
    trials=grid_trials,
    label=lambda config: describe(config).removesuffix(" seed=1111"),
    corpora=("ptb", "wikitext-2"),
    analyses=(
        Correlation(
            windows={"ptb": (56.6, 57.6), "wikitext-2": (64.0, 65.0)},
            published={
                "ptb": PublishedCorrelation(all_cells=0.48, windowed=0.24),
                "wikitext-2": PublishedCorrelation(all_cells=0.53, windowed=0.21),
            },
        ),
        GridMap(row="output_layer.c", column="output_layer.k"),
    ),
    deviations=("The text is made up.",),
)


def three_seeds(corpus: CorpusConfig) -> Iterable[TrialConfig]:
    for seed in (1111, 9075, 3173):
        for config in grid_trials(corpus):
            yield config.model_copy(update={"seed": seed})


SEEDED_STUDY = replace(STUDY, trials=three_seeds, label=describe)


def make_results(
    study: Study = STUDY, *, columns: int = 2000, rng_seed: int = 0
) -> tuple[list[dict[str, Any]], dict[str, NDArray[np.float64]]]:
    rng = np.random.default_rng(rng_seed)
    corpus = CorpusConfig(name="pydocs", sha256="0" * 64)
    rows, spectra = [], {}
    for config in study.trials(corpus):
        layer = output_layer_of(config)
        assert isinstance(layer, GssConfig)
        c, k = layer.c, layer.k
        knee = 26 + 12 * (k - 1) * (2.5 - abs(c)) + rng.uniform(0, 4)
        index = np.arange(1, columns + 1)
        values = 900 * index**-1.3 / (1 + (index / knee) ** 4) + 1e-7
        perplexity = float(200 + 5 * abs(c - 0.3) * k + rng.normal(0, 4))
        spectra[config.trial_id] = values
        metrics = _metrics(values, perplexity=perplexity)
        row = trial_row(study.label(config), config=config.model_dump(mode="json"), **metrics)
        rows.append(row | {"trial_id": config.trial_id})
    return rows, spectra


def _metrics(values: NDArray[np.float64], *, perplexity: float) -> dict[str, Any]:
    return {
        "train_perplexity": perplexity * 0.7,
        "valid_perplexity": perplexity * 1.05,
        "test_perplexity": perplexity,
        "kept_epoch": 8,
        "epochs": 8,
        "parameters": 61_234,
        "seconds": 15.25,
        "seconds_per_epoch": 1.7,
        "peak_memory_mib": 310.0,
        **rank_report(Spectrum(values, rows=8000, columns=len(values), method="gram")),
    }


def report_on(
    rows: Sequence[dict[str, Any]],
    out: Path,
    *,
    study: Study = STUDY,
    key: StudyKey = KEY,
    spectra: Mapping[str, NDArray[np.float64]] | None = None,
    epochs: Mapping[str, Sequence[EpochMetrics]] | None = None,
    paper_command: str | None = None,
    pdf: bool = False,
) -> ReportResult:
    return build_report(
        study,
        key,
        rows,
        spectra=spectra or {},
        epochs=epochs or {},
        run_command=None,
        paper_command=paper_command,
        out=out,
        pdf=pdf,
    )


def csv_records(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def fail(row: dict[str, Any], *, state: str, cause: str) -> dict[str, Any]:
    return row | {"state": state, "cause": cause, "metrics": {}}
