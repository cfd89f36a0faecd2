"""The command `compare`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from orchestrator.command import options
from orchestrator.command.options import console, print_document, print_out
from orchestrator.words import counted
from search_spaces.analyses import Comparison
from search_spaces.catalog import is_command
from trainables.errors import PROGRAM, UserError

if TYPE_CHECKING:
    from orchestrator.cluster import RunOptions
    from orchestrator.plan import Plan, PlanRequest
    from orchestrator.sweep import Answer, Typed
    from search_spaces.scales import Scale
    from search_spaces.study import Study

MOST_SEEDS, LIMIT = 20, 1000
STATUS = {"a_better": 0, "b_better": 1, "equivalent": 3}


@dataclass(frozen=True)
class Question:
    """Arguments and options that only `compare` has."""

    a: Annotated[str, Argument(metavar="A", help="A setting of the study.")]
    b: Annotated[str, Argument(metavar="B", help="Another setting.")]
    metric: Annotated[
        str | None, Option(help="Metric to compare. [default: the study's metric]")
    ] = None
    margin: Annotated[
        float, Option(min=0, help="Difference that does not matter, in the metric's unit.")
    ] = 0.0
    seeds: Annotated[
        int | None,
        Option(help="Train this number of seeds of each side, 2 to 1,000, then look once."),
    ] = None
    until_settled: Annotated[
        int | None,
        Option(
            metavar="MAX",
            min=5,
            help="Add seeds until there is a verdict, but at most MAX. The verdict is valid at any "
            f"number of seeds. [default: {MOST_SEEDS}, without --seeds]",
        ),
    ] = None
    output: options.TextFormat = "text"


def sides_plan(chosen: Iterable[tuple[Study, Scale, str, PlanRequest]], question: Question) -> Plan:
    """Return the plan of A and B. Raises UserError for wrong sides, options or corpora."""
    from orchestrator.plan import comparison_plan

    if question.seeds is not None and question.until_settled is not None:
        raise UserError("--seeds: --until-settled chooses the number. Leave one of them out.")
    count = question.until_settled or (MOST_SEEDS if question.seeds is None else question.seeds)
    if not (2 <= count <= LIMIT and question.margin < math.inf):
        raise UserError(
            f"compare: --seeds and --until-settled take 2 to {LIMIT:,}, --margin a finite number. "
            "Correct it."
        )
    (study, scale, corpus, request), *more = chosen
    if more:
        raise UserError("compare: needs one study and one --corpus. Name one of each.")
    metric = question.metric or study.goal.metric
    if study.goal.mode_of(metric) is None:
        raise UserError(
            f"--metric: it is not known whether a high or a low {metric} is better. Name another "
            f"metric, such as {study.goal.metric}."
        )
    # The plan checks the metric. A study without a source names no command at paper scale.
    study = replace(study, source="", analyses=(Comparison(metric=metric),))
    return comparison_plan(study, scale, corpus, request, (question.a, question.b), count)


def print_answer(
    plan: Plan, run_options: RunOptions, typed: Typed, question: Question, *, again: bool
) -> int:
    """Train what is missing, print the verdict and return the exit status."""
    from orchestrator.cluster import shared
    from orchestrator.sweep import INTERRUPTED, compare_sides

    run_options.storage.check()
    metric = question.metric or plan.study.goal.metric
    with shared():
        answer = compare_sides(
            plan,
            run_options,
            typed,
            console(stderr=True),
            metric=metric,
            margin=question.margin,
            sequential=question.seeds is None,
            again=again,
        )
    if answer is None:
        return INTERRUPTED
    study = plan.study.name if is_command(typed.study) else typed.study
    command = _next_command(answer, question, study, typed)
    if question.output == "json":
        print_document("compare", **_record(answer, plan, metric, question, command))
    else:
        for line in _lines(answer, metric, question, command):
            print_out(line)
    return STATUS.get(answer.verdict.verdict, 4)


def _next_command(answer: Answer, question: Question, study: str, typed: Typed) -> str | None:
    from orchestrator.sweep import command_line

    needed, lost = answer.verdict.pairs_needed, answer.seeds - answer.verdict.pairs
    if needed is None or (most := max(needed + lost, answer.seeds + 1)) > LIMIT:
        return None
    words = {**typed.options, "--until-settled": [str(most)]}
    words.pop("--seeds", None)
    return command_line("compare", study, question.a, question.b, options=words)


def _record(
    answer: Answer, plan: Plan, metric: str, question: Question, command: str | None
) -> dict[str, Any]:
    return {
        **vars(plan.key),
        "a": question.a,
        "b": question.b,
        "metric": metric,
        "better": "lower" if plan.study.goal.sign(metric) > 0 else "higher",
        "margin": question.margin,
        "sequential": question.seeds is None,
        "seeds": answer.seeds,
        **vars(answer.verdict),
        "next_command": command,
    }


def _lines(answer: Answer, metric: str, question: Question, command: str | None) -> Iterable[str]:
    from orchestrator.report import number

    verdict, name = answer.verdict, metric.replace("_", " ")
    a, b = question.a, question.b
    seeds = counted(verdict.pairs, "pair") + " of equal seeds"
    yield {
        "a_better": f"{a} is better than {b}.",
        "b_better": f"{b} is better than {a}.",
        "equivalent": f"{a} and {b} are equivalent within {question.margin:g}.",
        "no_difference_shown": f"No difference between {a} and {b} was shown.",
        "too_few_seeds": f"Too few seeds to compare {a} and {b}.",
    }[verdict.verdict]
    if verdict.pairs:
        yield (f"{name}: {number(verdict.mean_a)} ({a}), {number(verdict.mean_b)} ({b}); {seeds}.")
    if verdict.interval:
        low, high = verdict.interval
        yield (
            f"Difference, A minus B: {verdict.difference:+.4g} [{low:+.4g}, {high:+.4g}], p = "
            f"{verdict.p:.3g}."
        )
    if verdict.missing:
        yield f"There is no test: {verdict.missing}."
    if verdict.detectable_difference is not None:
        yield f"{seeds} find a difference of {verdict.detectable_difference:.3g} with 80% power."
    if verdict.pairs < answer.seeds:
        lost = counted(answer.seeds - verdict.pairs, "seed")
        yield f"{lost} gave no pair. `{PROGRAM} status` has causes; --retry runs failures again."
    if command is not None:
        yield f"About {verdict.pairs_needed} pairs would settle it: {command}"
