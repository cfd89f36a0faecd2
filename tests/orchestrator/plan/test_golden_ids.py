"""Tests that no code change, such as a new default, changes the trial ids in users' stores.

After an intended change, `python -m tests.orchestrator.plan.test_golden_ids` rewrites the file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from orchestrator.plan import Plan, PlanRequest, make_plan
from search_spaces.catalog import NAMES, load_study
from search_spaces.scales import SCALES
from trainables.config.kinds import AnyConfig, read_config

GOLDEN = Path(__file__).parents[2] / "assets" / "trial_ids.txt"
CORPORA = ("pydocs", "markov", "ptb", "wikitext-2")
TRANSFORMERS = ("gss_grid", ("ptb", "wikitext-2"))
"""One study represents all studies with `--model transformer`, because they share one recipe."""
DIGITS = 16


def test_every_trial_keeps_its_identity() -> None:
    golden, now = GOLDEN.read_text().splitlines(), list(lines())
    assert [line.split()[:4] for line in now] == [line.split()[:4] for line in golden], (
        "the list of studies, scales, corpora or trial counts has changed"
    )
    for line, expected in zip(now, golden, strict=True):
        assert line == expected, "a trial id has changed: users' stores would train the trial again"


def lines() -> Iterator[str]:
    """Yield one line for each plan: study, scale, corpus, number of trials, and trial ids.

    A tuned study gives only the trials that depend on no result.
    """
    for name, scale in itertools.product(NAMES, SCALES):
        study = load_study(name)
        for corpus in CORPORA if study.reads_text else ("none",):
            yield line(name, make_plan(study, SCALES[scale], corpus))
    name, corpora = TRANSFORMERS
    for scale, corpus in itertools.product(SCALES, corpora):
        plan = make_plan(load_study(name), SCALES[scale], corpus, PlanRequest(model="transformer"))
        yield line(f"{name}--model=transformer", plan)


def line(name: str, plan: Plan) -> str:
    ids = [identity(trial.validated)[:DIGITS] for trial in plan.trials]
    return " ".join([name, plan.key.scale, plan.key.corpus, str(plan.total), *ids])


def identity(config: AnyConfig) -> str:
    """Return a trial id that is the same in every Python version.

    The hash of the built-in text is fixed here, because this text depends on the Python version.
    """
    content = config.model_dump(mode="json")
    if content.get("corpus", {}).get("name") != "pydocs":
        return config.trial_id
    content["corpus"]["sha256"] = "0" * 64
    return read_config(content).trial_id


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(lines()) + "\n")
