from __future__ import annotations

import pytest

from tests.support import tiny_trial as tiny
from trainables.measurements import measure
from trainables.pulse import PULSE, START, TRAINING
from trainables.runtime import Runtime
from trainables.training import Trainer


@pytest.fixture(autouse=True)
def begun() -> None:
    PULSE.begin("one")


def test_training_steps_report_their_position() -> None:
    trainer = Trainer(tiny.trial(), tiny.corpus(), Runtime())
    assert (PULSE.phase, PULSE.epoch, PULSE.step) == (START, 0, 0)
    for number in range(1, 4):
        before = PULSE.count
        trainer.step()
        assert PULSE.count > before
        assert (PULSE.phase, PULSE.epoch, PULSE.step) == (TRAINING, 1, number)
    before = PULSE.count
    trainer.end_epoch()
    # The protocol's windows of 70 over 600 tokens in 10 streams, at least one.
    assert PULSE.count > before + 1
    assert PULSE.phase == "in validation"
    trainer.step()
    assert (PULSE.phase, PULSE.epoch, PULSE.step) == (TRAINING, 2, 4)


def test_measuring_reports_every_window() -> None:
    config = tiny.trial()
    trainer = Trainer(config, tiny.corpus(), Runtime())
    before = PULSE.count
    measure(["perplexity@1"], trainer.model, trainer.corpus, config, Runtime())
    assert PULSE.phase == "in the measurement perplexity@1"
    windows = len(trainer.corpus.test) // config.evaluation.window
    assert PULSE.count - before >= windows / config.evaluation.test_batch_size
