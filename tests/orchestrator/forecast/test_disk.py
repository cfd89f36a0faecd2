"""What trials are said to take on a disk is what their files take, within a few per cent."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.torch import save

from orchestrator.forecast import kept_bytes, running_bytes
from orchestrator.forecast.disk import CHECKPOINTS, RECORDS_BYTES
from search_spaces.awd_lstm import awd_lstm
from tests.support import tiny_trial
from trainables.config import CorpusConfig, EtAsgdConfig, GssConfig
from trainables.corpora import identity
from trainables.runtime import Runtime
from trainables.training.loop import Trainer


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_checkpoints_and_kept_weights_are_as_large_as_is_said(optimizer: str) -> None:
    config = tiny_trial.trial(
        optimizer=optimizer, learning_rate=0.001, epochs=2, averaging=EtAsgdConfig(switch_epoch=1)
    )
    trainer = Trainer(config, tiny_trial.corpus(), Runtime())
    tiny_trial.train(trainer)
    checkpoint, kept = len(save(trainer.snapshot()[0])), len(save(trainer.kept))
    said_kept = kept_bytes(config, tiny_trial.IDENTITY)
    said_checkpoint = (running_bytes(config, tiny_trial.IDENTITY) - said_kept) / CHECKPOINTS
    assert kept <= said_kept <= kept + RECORDS_BYTES
    assert checkpoint <= said_checkpoint <= checkpoint + RECORDS_BYTES


def test_the_papers_model_takes_a_gigabyte_while_it_runs(tmp_path: Path) -> None:
    config = awd_lstm(CorpusConfig(name="ptb", sha256="0" * 64), GssConfig(c=0.5, k=1.25))
    corpus = identity("ptb", data_dir=tmp_path)
    assert kept_bytes(config, corpus) == pytest.approx(4 * 24.2e6, rel=0.02)
    assert running_bytes(config, corpus) == pytest.approx(10 * 4 * 24.2e6, rel=0.02)
