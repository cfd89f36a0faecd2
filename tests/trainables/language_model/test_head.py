from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.support import tiny_trial as tiny
from trainables.config import GssConfig, SoftmaxConfig
from trainables.language_model import AwdLstm, OutputHead
from trainables.runtime import Runtime
from trainables.training import Trainer


@pytest.mark.parametrize("rank", [None, 2, 30, 100])
def test_initial_deviation_ignores_rank(rank: int | None) -> None:
    head = OutputHead(3000, 100, rank)
    head.initialise(0.05, torch.Generator().manual_seed(1))
    weight_VD = head.weight().detach().clone()
    assert weight_VD.shape == (3000, 100)
    assert weight_VD.std().item() == pytest.approx(0.05, rel=0.1)
    assert torch.linalg.matrix_rank(weight_VD.double(), rtol=1e-5) == min(rank or 100, 100)
    head.scale_(3.0)
    torch.testing.assert_close(head.weight(), 3 * weight_VD)


def test_only_the_head_starts_differently() -> None:
    models = []
    for rank in (None, 3):
        config = tiny.trial(output_layer=GssConfig(c=0, k=2), head_rank=rank)
        models.append(AwdLstm(config.model, config.output_layer, 40))
        models[-1].initialise(torch.Generator().manual_seed(3))
    tied, ranked = models
    assert tied.output_weight() is tied.embedding_VD
    names = dict(ranked.named_parameters())
    for name, parameter in tied.named_parameters():
        assert torch.equal(parameter, names.pop(name)), name
    assert set(names) == {"head.left_VR", "head.right_RD"}


@pytest.mark.parametrize("start", ["published", "scaled"])
def test_softmax_rank_exceeds_head_by_two(start: str) -> None:
    config = tiny.trial(output_layer=SoftmaxConfig(), head_rank=2, epochs=1)
    config = config.model_copy(update={"model": config.model.model_copy(update={"start": start})})
    corpus = tiny.corpus()
    trainer = Trainer(config, corpus, Runtime())
    before = trainer.model.output_weight().detach().clone()
    tiny.train(trainer)
    model = trainer.model.double()
    log_p_NV = tiny.log_p_matrix(model, corpus.test)
    assert np.linalg.matrix_rank(log_p_NV, rtol=1e-12) == 4
    assert not torch.allclose(before, model.output_weight().float(), atol=1e-3), "it was trained"
