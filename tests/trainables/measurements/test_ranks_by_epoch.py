from __future__ import annotations

from typing import Any

from tests.support import tiny_trial as tiny
from tests.trainables.measurements.test_kl_rank import brute_force
from trainables.config import (
    SPECTRUM_BY_EPOCH,
    CorpusConfig,
    EvaluationConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
)
from trainables.measurements import epoch_ranks, measure
from trainables.measurements.ranks_by_epoch import ranks_by_epoch_metrics
from trainables.runtime import Runtime
from trainables.training import Trainer
from trainables.trial_folder import EpochMetrics


def epoch(number: int, valid_loss: float, **ranks: Any) -> EpochMetrics:
    fields = {"tokens": number, "train_loss": 1.0, "averaging": False, "seconds": 1.0}
    return EpochMetrics(epoch=number, valid_loss=valid_loss, **fields, **ranks)


EPOCHS = [
    epoch(1, 5.0, press_rank=7, entropy_rank=2.5),
    epoch(2, 4.0, press_rank=9, entropy_rank=2.25, kl_rank=3),
    epoch(3, 3.0, press_rank=9, entropy_rank=1.5, kl_rank=2),
    epoch(4, 3.5, press_rank=8, entropy_rank=1.75, kl_rank=2),
]


def test_peak_kept_and_last_rank() -> None:
    assert ranks_by_epoch_metrics(EPOCHS) == {
        "ranked_epochs": 4,
        "press_rank_peak": 9,
        "press_rank_peak_epoch": 2,
        "press_rank_kept": 9,
        "press_rank_last": 8,
        "entropy_rank_peak": 2.5,
        "entropy_rank_peak_epoch": 1,
        "entropy_rank_kept": 1.5,
        "entropy_rank_last": 1.75,
        "kl_rank_peak": 3,
        "kl_rank_peak_epoch": 2,
        "kl_rank_kept": 2,
        "kl_rank_last": 2,
    }


def test_epochs_are_the_trials() -> None:
    config = tiny.trial(epochs=2, epoch_rank_contexts=30)
    trainer = Trainer(config, tiny.corpus(), Runtime(), epoch_ranks)
    tiny.train(trainer)
    epochs = trainer.progress.epochs
    arguments = ([SPECTRUM_BY_EPOCH], trainer.model, trainer.corpus, config, Runtime())
    [(metrics, _)] = measure(*arguments, epochs=epochs).values()
    assert (metrics["ranked_epochs"], metrics["press_rank_last"]) == (2, epochs[1].press_rank)
    assert "kl_rank_last" not in metrics, "of Transformers alone"


def test_kl_rank_of_transformer_epoch() -> None:
    corpus = tiny.corpus()
    model = tiny.spread(SoftmaxConfig())
    config = TransformerTrialConfig(
        seed=0,
        corpus=CorpusConfig(name="tiny", sha256="0" * 64),
        output_layer=SoftmaxConfig(),
        evaluation=EvaluationConfig(epoch_rank_contexts=200, window=70),
    )
    ranks = epoch_ranks(model, corpus, config)
    curve = brute_force(tiny.log_p_matrix(model, corpus.valid[:200]), until=1e-2)
    assert ranks["kl_rank"] == len(curve) - 1 >= 3
    assert ranks.keys() == {"press_rank", "entropy_rank", "kl_rank"}
