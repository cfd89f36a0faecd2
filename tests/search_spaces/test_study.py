"""A study is a short file, and reading one is cheap."""

from __future__ import annotations

import subprocess
import sys

from search_spaces.study import Study, describe
from trainables.config import CorpusConfig, GssConfig, SoftmaxConfig, TrialConfig

CORPUS = CorpusConfig(name="pydocs", sha256="0" * 64)


def test_a_study_needs_a_name_and_trials_only() -> None:
    study = Study(
        name="slopes",
        trials=lambda corpus: (
            TrialConfig(seed=1, corpus=corpus, output_layer=GssConfig(c=0.0, k=k)) for k in (1.0, 2.0)
        ),
    )
    trials = list(study.trials(CORPUS))
    assert [study.label(trial) for trial in trials] == ["gss c=0 k=1 seed=1", "gss c=0 k=2 seed=1"]
    assert study.measurements == ("perplexity@1", "spectrum@1")


def test_an_output_layer_without_parameters_is_described_by_its_name() -> None:
    assert describe(TrialConfig(seed=7, corpus=CORPUS, output_layer=SoftmaxConfig())) == "softmax seed=7"


def test_reading_a_study_loads_no_numerical_library() -> None:
    code = (
        "import sys, search_spaces.study; print([m for m in ('numpy', 'pandas', 'torch', 'scipy') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
