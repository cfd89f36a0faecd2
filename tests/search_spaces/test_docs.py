"""What docs/write-a-study.md shows of a study's trials, exactly as it stands there."""

from __future__ import annotations

import re

from search_spaces.scales import SCALES, apply_scale
from search_spaces.study import Study
from tests.support.command import ROOT
from trainables.config import CorpusConfig, TransformerTrialConfig, TrialConfig

BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "write-a-study.md").read_text(), re.DOTALL
)
CORPUS = CorpusConfig(name="ptb", sha256="0" * 64)


def test_widths_and_ranks_of_transformers_are_at_quick_what_is_said() -> None:
    (block,) = (block for block in BLOCKS if "transformer(corpus" in block)
    names: dict[str, object] = {}
    exec(block, names)
    study = names["STUDY"]
    assert isinstance(study, Study)
    quick = [apply_scale(SCALES["quick"], config) for config in study.trials(CORPUS)]
    models = [config.model for config in quick if isinstance(config, TransformerTrialConfig)]
    assert [model.width for model in models] == [16, 32, 64, 128, 64, 64, 64]
    assert [model.head_rank for model in models] == [None] * 4 + [1, 8, 64]


def test_rates_and_widths_vary_by_dotted_keys() -> None:
    (study,) = (block for block in BLOCKS if block.startswith('"""my_study.py'))
    (varied,) = (block for block in BLOCKS if "with_values" in block)
    names: dict[str, object] = {}
    exec(study, names)
    before = list(made.trials(CORPUS)) if isinstance(made := names["STUDY"], Study) else []
    exec(varied, names)
    trials = names["trials"]
    assert callable(trials)
    configs = [config for config in trials(CORPUS) if isinstance(config, TrialConfig)]
    assert len(before) == 6
    assert [config.training.learning_rate for config in configs] == [5.0, 10.0, 20.0, 20.0, 20.0]
    assert [config.model.embedding_width for config in configs] == [400, 400, 400, 200, 300]
    assert len({config.trial_id for config in configs}) == 5
