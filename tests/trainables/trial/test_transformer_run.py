"""A Transformer's trial from config to result, pruned and taken up again, and measured on the
weights that it kept."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.support.smoke_trials import smoke_transformer, without_clocks
from tests.support.tiny_trial import log_p_matrix
from trainables.config import CustomConfig, MosConfig, OutputLayerConfig, SoftmaxConfig
from trainables.output_layers import LayerShape, PointwiseSoftmax
from trainables.runtime import Runtime
from trainables.trial import kept_model, measure_kept, run_trial
from trainables.trial_folder import TrialFolder

NAMES = ("perplexity@1", "spectrum@1", "top_k@1")


class ShiftedBias(PointwiseSoftmax):
    """A user's own layer."""

    def __init__(self, shape: LayerShape, scale: float) -> None:
        super().__init__(shape)
        self.bias_V.data += scale


@pytest.mark.parametrize(
    ("layer", "precision"),
    [(MosConfig(mixtures=2), "bf16"), (CustomConfig.of(ShiftedBias, scale=0.5), "tf32")],
    ids=["mos", "custom"],
)
def test_pruned_trial_goes_on_with_the_same_bits(
    tmp_path: Path, layer: OutputLayerConfig, precision: str
) -> None:
    config = smoke_transformer(layer, precision=precision)
    runtime = Runtime(checkpoint_every_s=0.0)
    straight = run_trial(
        config, directory=tmp_path / "straight", runtime=runtime, measurements=NAMES
    )
    first, second = straight.epochs[:2]
    above = {1: first.valid_loss, 2: second.valid_loss - 1e-9}
    pruned = run_trial(config, directory=tmp_path / "stopped", runtime=runtime, stop_above=above)
    assert pruned.state == "pruned" and len(pruned.epochs) == 2
    whole = run_trial(config, directory=tmp_path / "stopped", runtime=runtime, measurements=())
    measure_kept(config, directory=tmp_path / "stopped", runtime=runtime, names=NAMES)
    folder = TrialFolder(tmp_path / "stopped", config.trial_id)
    later = {name: folder.measurement(name) for name in NAMES}
    assert without_clocks(whole)["epochs"] == without_clocks(straight)["epochs"]
    for name, measured in later.items():
        assert measured is not None and measured[0] == straight.measurements[name]
    kept = (tmp_path / "stopped" / "kept.safetensors").read_bytes()
    assert kept == (tmp_path / "straight" / "kept.safetensors").read_bytes()
    model, _ = kept_model(config, directory=tmp_path / "straight", runtime=runtime)
    assert straight.metrics["parameters"] == sum(p.numel() for p in model.parameters())
    assert all(epoch.press_rank and not epoch.averaging for epoch in straight.epochs)
    assert math.exp(second.valid_loss) < math.exp(first.valid_loss) < 200


def test_spectrum_of_the_matrix_read_in_windows(tmp_path: Path) -> None:
    """Softmax with output weights of rank 6: log P has rank 8 at most."""
    config = smoke_transformer(SoftmaxConfig())
    outcome = run_trial(config, directory=tmp_path, runtime=Runtime(), measurements=NAMES)
    model, corpus = kept_model(config, directory=tmp_path, runtime=Runtime())
    log_p = log_p_matrix(model, corpus.test[:600], window=16)
    sigma = np.linalg.svd(log_p, compute_uv=False)
    assert outcome.metrics["sigma_max"] == pytest.approx(sigma[0], rel=1e-6)
    assert outcome.metrics["press_rank"] == 8 == np.count_nonzero(sigma > 1e-5 * sigma[0])
