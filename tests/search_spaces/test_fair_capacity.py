from __future__ import annotations

from orchestrator.forecast import estimate
from orchestrator.plan import PlanRequest, make_plan
from search_spaces.catalog import load_study
from search_spaces.fair_capacity import TUNING
from search_spaces.scales import SCALES
from search_spaces.tuning import cell_count
from trainables.config import CorpusConfig
from trainables.parameters import in_millions

SIDES = ("mos_dagger", "softmax_dagger", "softmax_double_dagger")


def test_spaces_match_supplement_tables() -> None:
    """Expected values are typed from the supplement's tables, independently of the code."""
    assert {d.key: d.values for d in TUNING.stage1} == {
        "model.dropout_embedding": (0.2, 0.4),
        "model.dropout_hidden": (0.225, 0.3),
        "model.embedding_noise": (0.10, 0.15),
    }
    assert {d.key: d.values for d in TUNING.stage2} == {
        "model.dropout_embedding_matrix": (0.075, 0.100, 0.125),
        "model.dropout_embedding": (0.28, 0.29, 0.30, 0.31, 0.32, 0.33, 0.34),
        "model.dropout_hidden": (0.20, 0.225, 0.25, 0.275, 0.30, 0.325, 0.35),
        "model.dropout_output": (0.26,),
        "model.embedding_noise": (0.10, 0.125, 0.15, 0.175, 0.20),
        "training.weight_decay": (1.2e-6, 1.3e-6, 1.4e-6, 1.5e-6),
    }
    assert (cell_count(TUNING.stage1), cell_count(TUNING.stage2)) == (8, 2940)


def test_sides_differ_only_in_layer() -> None:
    bases = [base(CorpusConfig(name="ptb", sha256="0" * 64)) for base in TUNING.sides.values()]
    for base in bases:
        assert (base.training.batch_size, base.model.hidden_width, base.seed) == (12, 960, 28)
        assert base.training == bases[0].training
    plan = make_plan(load_study("fair_capacity"), SCALES["paper"], "ptb", PlanRequest())
    counts = {
        trial.name.split()[0]: in_millions(estimate(trial.validated, plan.corpus).parameters)
        for trial in plan.trials
    }
    assert [counts[side] for side in SIDES] == ["17.53", "16.35", "17.56"]
