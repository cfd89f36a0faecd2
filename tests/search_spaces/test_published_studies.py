"""The studies of the papers: how many trials each has, and that what was printed stands beside the right ones."""

from __future__ import annotations

import pytest

from orchestrator.plan.study_plan import Plan, make_plan, scale_named
from search_spaces.analyses import Comparison, Curves, Differences, GroupTable, Similarity
from search_spaces.catalog import NAMES, load_study
from search_spaces.published import by_group, p_values, rows
from search_spaces.study import group_of
from trainables.parameters import in_millions

PAPER_SCALE = {
    "gss_grid": {"ptb": 72, "wikitext-2": 36},
    "seeds": {"ptb": 55, "wikitext-2": 55},
    "averaging": {"ptb": 12, "wikitext-2": 12},
    "plif_frozen": {"ptb": 20, "wikitext-2": 20},
    "mos_k": {"ptb": 6, "wikitext-2": 3},
    "mos_dropout": {"ptb": 3, "wikitext-2": 3},
    "rank_metrics": {"ptb": 5, "wikitext-2": 5},
    "qualitative": {"ptb": 8},
    "word_similarity": {"ptb": 6, "wikitext-2": 6},
    "plif_lm": {"ptb": 4, "wikitext-2": 3},
}
"""../shared/protocol.md."""
WITHOUT_TEXT = {"dirichlet", "layer_jacobian", "layer_gates", "press_robustness", "published"}
VARIANTS = [(study, corpus) for study, corpora in PAPER_SCALE.items() for corpus in corpora]


def plan_of(study: str, corpus: str, scale: str = "paper") -> Plan:
    return make_plan(load_study(study), scale_named(scale), corpus)


@pytest.mark.parametrize(("study", "corpus"), VARIANTS)
def test_a_study_has_the_published_number_of_trials(study: str, corpus: str) -> None:
    assert len(plan_of(study, corpus).trials) == PAPER_SCALE[study][corpus]
    assert set(load_study(study).corpora) == set(PAPER_SCALE[study])


@pytest.mark.parametrize(("study", "corpus"), VARIANTS)
def test_a_trial_has_the_same_name_at_every_scale(study: str, corpus: str) -> None:
    names = [[trial.name for trial in plan_of(study, corpus, scale).trials] for scale in ("quick", "small", "paper")]
    assert names[0] == names[1] == names[2]
    assert len(set(names[0])) == len(names[0])


@pytest.mark.parametrize(("study", "corpus"), VARIANTS)
def test_every_printed_value_stands_beside_a_group_of_the_plan(study: str, corpus: str) -> None:
    groups = {group_of(trial.name) for trial in plan_of(study, corpus).trials}
    for request in load_study(study).analyses:
        match request:
            case GroupTable(published=published) | Curves(published=published):
                printed = set(published.get(corpus, {}))
            case Comparison(published=published, baselines=baselines):
                printed = {*published.get(corpus, {}), *baselines, *baselines.values()}
            case Differences(published=differences, baselines=baselines):
                printed = {*differences.get(corpus, {}), *baselines, *baselines.values()}
            case Similarity(published=scores):
                printed = {group for row in scores.get(corpus, {}).values() for group in row}
            case _:
                printed = set()
        assert printed <= groups


def test_parameter_counts_beside_the_printed_ones_are_equal() -> None:
    compared = 0
    for study, corpus in VARIANTS:
        if study == "plif_lm":  # the talk trained other models
            continue
        trials = {group_of(trial.name): trial.parameters for trial in plan_of(study, corpus).trials}
        for request in load_study(study).analyses:
            printed = request.published.get(corpus, {}) if isinstance(request, GroupTable) else {}
            for group, numbers in printed.items():
                if "parameters" in numbers:
                    assert in_millions(trials[group]) == in_millions(int(numbers["parameters"].value)), (study, group)
                    compared += 1
    assert compared == 2 * 5 + 2 * 12 + 6 + 3


def test_studies_share_their_trials() -> None:
    """What `averaging` trains with ET-ASGD serves `rank_metrics`, `word_similarity`, `seeds` and `qualitative`."""
    for corpus in ("ptb", "wikitext-2"):
        trained = {t.trial_id for study in ("averaging", "seeds") for t in plan_of(study, corpus).trials}
        for study in ("rank_metrics", "word_similarity", "qualitative"):
            assert {trial.trial_id for trial in plan_of(study, corpus).trials} <= trained
    fifteen = {trial.trial_id for trial in plan_of("averaging", "ptb").trials if trial.name.startswith("mos NT-ASGD")}
    assert fifteen <= {trial.trial_id for trial in plan_of("mos_k", "ptb").trials}
    assert fifteen <= {trial.trial_id for trial in plan_of("mos_dropout", "ptb").trials}


def test_printed_values_are_read_as_they_are_printed() -> None:
    table = by_group("table2_seeds")
    mos = table["wikitext-2"]["mos"]
    assert (mos["test_perplexity"].value, mos["test_perplexity"].deviation) == (61.96, 0.40)
    assert (mos["press_rank"].value, mos["press_rank"].deviation) == (15734, 188)
    assert (mos["parameters"].value, mos["parameters"].deviation) == (34_900_000, None)
    assert mos["seconds_per_epoch"].value == 600
    assert p_values("sm_table1_significance")["ptb"] == {
        "sigsoftmax": 0.392,
        "gss": 0.262,
        "lms_plif": 1.91e-05,
        "mos": 2.02e-15,
    }
    assert len(rows("sm_table3_word_similarity")) == 2 * 13 * 6
    assert by_group("table5_fair_capacity")["ptb"]["mos_dagger"]["test_perplexity"].value == 56.39


def test_the_catalog_lists_them_all() -> None:
    assert {*PAPER_SCALE, "fair_capacity", *WITHOUT_TEXT} == set(NAMES)
    assert all(load_study(name).reads_text != (name in WITHOUT_TEXT) for name in NAMES)


def test_all_studies_together_plan_each_trial_once() -> None:
    plans = [plan_of(study, corpus) for study, corpus in VARIANTS]
    union = {trial.trial_id for plan in plans for trial in plan.trials}
    # By hand: the grids; seeds less one cell of each grid; of averaging NT-ASGD and moc; the frozen models; mos_k and
    # mos_dropout without K = 15 at full dropout; mos_plif.
    assert len(union) == (72 + 36) + (110 - 2) + 2 * 7 + 20 + (9 - 2) + (6 - 2) + 1
