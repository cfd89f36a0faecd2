"""A study planned with another model: a variant of its own, that is named, printed and found as it
was typed."""

from __future__ import annotations

import json
import shlex

import pytest

from orchestrator.plan import Plan, PlanRequest, make_plan, scale_named
from orchestrator.sweep.announcement import paper_command, run_command
from orchestrator.variants import (
    model_of,
    model_override,
    setting_hash,
    study_of,
    typed_model,
    typed_settings,
    typed_variant,
)
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES, apply_scale
from search_spaces.transformer import transformer
from trainables.config import CorpusConfig, TransformerTrialConfig, output_layer_of
from trainables.errors import UserError


def plan_of(
    model: str | None = "transformer",
    study: str = "gss_grid",
    scale: str = "quick",
    **request: object,
) -> Plan:
    asked = PlanRequest(model=model, **request)  # type: ignore[arg-type]
    return make_plan(load_study(study), scale_named(scale), "ptb", asked)


def layers(plan: Plan) -> list[object]:
    return [output_layer_of(trial.config) for trial in plan.trials]


@pytest.mark.parametrize("scale", SCALES)
def test_every_trial_is_the_recipe_at_the_scale_with_the_name_that_the_study_gives(
    scale: str,
) -> None:
    plan, lstm = plan_of(scale=scale), plan_of(None, scale=scale)
    assert [trial.name for trial in plan.trials] == [trial.name for trial in lstm.trials]
    assert layers(plan) == layers(lstm)
    for trial in plan.trials:
        config = trial.config
        assert isinstance(config, TransformerTrialConfig)
        assert config == apply_scale(
            SCALES[scale], transformer(config.corpus, config.output_layer, seed=config.seed)
        )


def test_the_variant_has_a_key_and_a_folder_of_its_own() -> None:
    plain, chosen, other = plan_of(None), plan_of("lstm"), plan_of()
    assert plain.key == chosen.key and [t.trial_id for t in plain.trials] == [
        t.trial_id for t in chosen.trials
    ]
    assert json.loads(other.key.overrides) == {"--model": "transformer"}
    assert (
        other.key.variant.startswith("gss_grid-quick-ptb-")
        and other.key.variant != plain.key.variant
    )
    assert not {trial.trial_id for trial in plain.trials} & {
        trial.trial_id for trial in other.trials
    }


def test_settings_are_those_of_a_transformer_and_stand_beside_the_model() -> None:
    plan = plan_of(overrides={"training.beta2": (0.95, 0.999)})
    assert len(plan.trials) == 2 * len(plan_of().trials)
    assert plan.trials[0].name.startswith("gss c=-2 k=1.5, training.beta2=0.95")
    assert typed_variant(plan.key.overrides) == [
        "--model transformer",
        "--set training.beta2=0.95,0.999",
    ]
    assert typed_settings(plan.key.overrides) == ["training.beta2=0.95,0.999"]
    with pytest.raises(UserError, match=r"--set knows no key .training\.bptt"):
        plan_of(overrides={"training.bptt": 35})


def test_the_printed_command_plans_the_same_trials() -> None:
    plan = plan_of(scale="smoke", overrides={"training.epochs": 1})
    rows = [{"config": trial.config.model_dump(mode="json")} for trial in plan.trials]
    words = shlex.split(run_command("gss_grid", plan.study, plan.key, (), rows))
    assert words[-4:] == ["--model", "transformer", "--set", "training.epochs=1"]
    assert len({setting_hash(row["config"]) for row in rows}) == 4
    paper = paper_command("gss_grid", plan.study, plan.key, ())
    assert (
        paper
        == "python sweep.py gss_grid --scale paper --corpus ptb --corpus wikitext-2 --model transformer"
    )


def test_seeds_are_repeated_as_an_lstms_are() -> None:
    def settings(plan: Plan) -> list[tuple[object, int]]:
        return [(output_layer_of(trial.config), trial.config.seed) for trial in plan.trials]

    assert settings(plan_of(seeds=2)) == settings(plan_of(None, seeds=2))
    assert settings(plan_of(study="seeds")) == settings(plan_of(None, study="seeds"))


def test_a_report_shows_the_study_as_the_variant_was_planned() -> None:
    study = load_study("gss_grid")
    assert study_of(study, plan_of(None).key.overrides) is study
    changed = study_of(study, plan_of().key.overrides)
    configs = list(changed.trials(CorpusConfig(name="ptb", sha256="0" * 64)))
    assert len(configs) == 72 and all(
        isinstance(config, TransformerTrialConfig) for config in configs
    )


@pytest.mark.parametrize("text", ["{}", "damaged", "[1]", "3", '{"training.epochs":3}'])
def test_what_names_no_model_is_of_the_studys_own(text: str) -> None:
    assert model_of(text) == "lstm" and typed_model(text) == []


def test_only_a_model_that_there_is_makes_a_variant() -> None:
    assert model_override(None) == model_override("lstm") == {}
    assert model_override("transformer") == {"--model": "transformer"}
    with pytest.raises(UserError, match="unknown --model 'gru': Choose from lstm, transformer"):
        model_override("gru")
