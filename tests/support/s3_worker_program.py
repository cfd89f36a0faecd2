"""A worker to be killed by tests: `python -m tests.support.s3_worker_program URL`.

Runs one trial with its files at the URL and prints the numbers of the epochs that it trains, then its outcome.
"""

from __future__ import annotations

import sys

from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import storage_at
from orchestrator.store.records import PlannedTrial
from orchestrator.worker.messages import EVENTS, Pack
from orchestrator.worker.pack_run import Job, TrialFunctions, run_pack
from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from trainables.config import CorpusConfig, GssConfig, TrialConfig
from trainables.corpora import identity
from trainables.runtime import Runtime

EPOCHS = 40
RUNTIME = Runtime(checkpoint_every_s=0.5)
MEASUREMENTS = ("perplexity@1", "spectrum@1")


def config() -> TrialConfig:
    """A trial of a few seconds."""
    pydocs = identity("pydocs", data_dir=None)
    trial = awd_lstm(CorpusConfig(name=pydocs.name, sha256=pydocs.sha256), GssConfig(c=0.0, k=2.0), seed=1)
    small = apply_scale(SCALES["smoke"], trial)
    assert isinstance(small, TrialConfig)
    return small.model_copy(update={"training": small.training.model_copy(update={"epochs": EPOCHS})})


def show(text: str) -> None:
    """Print what the worker reports."""
    for event in EVENTS.validate_json(text):
        if event.epoch is not None:
            print(event.epoch.epoch, flush=True)
        if event.halt is not None or event.outcome is not None:
            print(event.halt or event.outcome.model_dump_json(), flush=True)  # type: ignore[union-attr]


if __name__ == "__main__":
    job = Job(
        options=RunOptions(storage=storage_at(sys.argv[1]), runtime=RUNTIME),
        measurements=MEASUREMENTS,
        functions=TrialFunctions(),
    )
    run_pack(Pack((PlannedTrial.of(config(), "the trial"),)), job, show)
