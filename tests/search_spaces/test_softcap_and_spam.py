from __future__ import annotations

import pandas as pd
import pytest

from orchestrator.plan import (
    Plan,
    PlanRequest,
    is_paper_scale,
    make_plan,
)
from search_spaces.analyses import Lines
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES
from search_spaces.softcap import softmax_bent_after_training
from search_spaces.study import group_of
from trainables.errors import UserError


def plan_of(study: str, scale: str, corpus: str = "none", seeds: int | None = None) -> Plan:
    return make_plan(load_study(study), SCALES[scale], corpus, PlanRequest(seeds=seeds))


def test_every_softcap_is_bent_later() -> None:
    [lines] = [request for request in load_study("softcap").analyses if isinstance(request, Lines)]
    groups = {group_of(trial.name) for trial in plan_of("softcap", "quick", "ptb").trials}
    later_names = {prefix.replace("bent", "softcap").strip() for prefix in lines.after}
    assert later_names == groups - {"softmax"} and lines.reference == "softmax"


def test_table_of_bends_has_means() -> None:
    values = {"press_rank": 196.0, "test_perplexity": 106.0, "kl_from_softmax": 0.0255}
    after = {f"bent tanh 15 {name}": value for name, value in values.items()}
    trained = {"press_rank": 205.0, "test_perplexity": 104.0}
    rows = [
        {"group": "softmax", **after},
        {"group": "softmax", **after, "bent tanh 15 press_rank": 200.0},
        *({"group": f"softcap tanh {cap}", **trained} for cap in (15, 20)),
    ]
    sentence, table = softmax_bent_after_training(pd.DataFrame(rows))
    assert "tanh 15, the Press rank is then 198" in sentence
    assert "(KL from the unbent softmax: 0.025 nats)" in sentence and "it is 205." in sentence
    [line] = table.to_numpy().tolist()
    assert line == ["softcap tanh 15", 205, 104, 198, 106, pytest.approx(0.0255)]
    assert len(softmax_bent_after_training(pd.DataFrame(rows[2:]))) == 1


def test_spam_trials_ignore_scale() -> None:
    study = load_study("spam")
    quick, paper = ({trial.trial_id for trial in plan_of("spam", scale).trials}
                    for scale in ("quick", "paper"))  # fmt: skip
    assert quick < paper
    assert is_paper_scale(study, "small") and not is_paper_scale(study, "quick")


def test_generated_texts_take_no_corpus() -> None:
    with pytest.raises(UserError, match="spam reads no text"):
        plan_of("spam", "quick", "ptb")
    with pytest.raises(UserError, match="spam has 3"):
        plan_of("spam", "quick", seeds=2)
