"""What docs/write-a-study.md shows of a study's trials, exactly as it stands there."""

from __future__ import annotations

import re

from search_spaces.study import Study
from tests.support.command import ROOT
from trainables.config import CorpusConfig, TrialConfig

BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "write-a-study.md").read_text(), re.DOTALL
)
CORPUS = CorpusConfig(name="ptb", sha256="0" * 64)


def test_documented_keys_vary_rates_and_widths() -> None:
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
