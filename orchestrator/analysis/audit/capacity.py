"""Parameter counts from the project's configs, and the talk's from each other; final settings among
those tried."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import (
    CORPORA,
    MODELS,
    Check,
    PrintedNumber,
    column_of,
    decided,
    look,
)
from search_spaces.awd_lstm import awd_lstm
from search_spaces.fair_capacity import TUNING
from search_spaces.models import trial
from trainables.config import CorpusConfig, MosConfig, TrialConfig
from trainables.corpora import PUBLISHED_CORPORA
from trainables.parameters import in_millions, parameter_count

QUANTITY = "parameters, in millions"
DIGITS = "to the two decimals of a million printed, cut off, not rounded"
CUT_OFF = f"arithmetic on the configuration of SM Table 6: {DIGITS}"
OF_TEXT = f"arithmetic on the widths of the text (d = d' = 280 or 340) and the MoS configuration of SM Table 6: {DIGITS}"
OF_TALK = (
    "arithmetic on the AAAI paper's configuration, cut off or rounded to the digits printed; the "
    "talk does not print "
    "its own configuration, so it need not follow"
)
COUNTED = ("table2_seeds", "sm_table10_11_averaging", "sm_table4_5_mos_k", "table5_fair_capacity")
TALK = {
    "softmax": "softmax",
    "lms_plif_1e5": "lms_plif",
    "mos_15": "mos",
    "mos_15_plif_1e6": "mos_plif",
}
KNOTS = {"lms_plif_1e5": ("softmax", 1e5), "mos_15_plif_1e6": ("mos_15", 1e6)}
"""A model of the talk with a PLIF, the one without, and the knots."""
WIDTHS = ("dim_embedding", "dim_hidden", "dim_context", "mos_mixtures", "plif_knots")
TRIED = "sm_table7_8_9_fair_capacity_tuning"
TUNED = {
    "final_softmax_double_dagger": "Softmax\N{DOUBLE DAGGER}",
    "final_mos_dagger": "MoS\N{DAGGER}",
}


def checks() -> Iterator[Check]:
    """Tables 2 and 5, SM Tables 4, 5, 10 and 11, the text's 16.35M, and the talk's table."""
    for table in COUNTED:
        for printed in column_of(table, "params_millions"):
            yield _count(printed)
    count = in_millions(parameters(TUNING.sides["softmax_dagger"](_corpus("ptb"))))
    yield Check(
        source="text, Softmax\N{DAGGER}",
        quantity=QUANTITY,
        printed="16.35",
        recomputed=count,
        rule=OF_TEXT,
        verdict=decided(count == "16.35"),
        uses=_widths_beside_text(),
    )
    for printed in column_of("ganea_language_modelling", "params_millions"):
        yield _of_talk(printed)
        if printed.row["model"] in KNOTS:
            yield _two_a_knot(printed)


def parameters(config: TrialConfig) -> int:
    """Of a model on the whole vocabulary of its corpus."""
    return parameter_count(config, PUBLISHED_CORPORA[config.corpus.name].vocabulary_size)


def _corpus(name: str) -> CorpusConfig:
    """The text itself does not matter to a count."""
    return CorpusConfig(name=name, sha256="0" * 64)


def _config(printed: PrintedNumber) -> TrialConfig:
    """Of the model that the number's line is about."""
    corpus, row = _corpus(printed.corpus), printed.row
    if "mixtures" in row:
        return awd_lstm(corpus, MosConfig(mixtures=int(row["mixtures"])))
    return (
        TUNING.sides[row["model"]](corpus)
        if row["model"] in TUNING.sides
        else trial(corpus, row["model"])
    )


def _count(printed: PrintedNumber) -> Check:
    count, digits = in_millions(parameters(_config(printed))), f"{printed.value:.2f}"
    of_text, by_mixtures = printed.row.get("model") in TUNING.sides, "mixtures" in printed.row
    return Check(
        source=f"{printed.source}, K={printed.row['mixtures']}" if by_mixtures else printed.source,
        quantity=QUANTITY,
        printed=digits,
        recomputed=count,
        rule=OF_TEXT if of_text else CUT_OFF,
        verdict=decided(count == digits),
        covers=(printed,),
        uses=(
            *(_widths_beside_text() if of_text else _widths()),
            *([printed.beside("mixtures")] if by_mixtures else []),
        ),
    )


def _widths() -> tuple[PrintedNumber, ...]:
    """The cells of SM Table 6 that a count rests on."""
    names = column_of("sm_table6_hyperparameters", "hyperparameter")
    return tuple(
        name.beside(column)
        for name in names
        if name.text in WIDTHS
        for column in name.row
        if column not in ("hyperparameter", "unit_note") and name.row[column]
    )


def _widths_beside_text() -> tuple[PrintedNumber, ...]:
    """Those that the text leaves to SM Table 6: the hidden width of MoS on PTB, and its number of
    mixtures."""
    return tuple(
        look("sm_table6_hyperparameters", "mos_moc_ptb", hyperparameter=name)
        for name in ("dim_hidden", "mos_mixtures")
    )


def _of_talk(printed: PrintedNumber) -> Check:
    decimals = _decimals(printed)
    exact = parameters(trial(_corpus(printed.corpus), TALK[printed.row["model"]])) / 1e6
    cut, rounded = int(exact * 10**decimals) / 10**decimals, round(exact, decimals)
    return Check(
        source=printed.source,
        quantity=QUANTITY,
        printed=printed.text,
        recomputed=f"{exact:.2f}",
        rule=OF_TALK,
        verdict="compatible" if printed.value in (cut, rounded) else "explained",
        covers=(printed,),
    )


def _two_a_knot(printed: PrintedNumber) -> Check:
    """What the talk itself adds for its function."""
    plain, knots = KNOTS[printed.row["model"]]
    without = look(printed.table, printed.column, corpus=printed.corpus, model=plain)
    added = 2 * knots / 1e6
    # The softmax of WikiText-2 is printed without decimals, which leaves room for one number a knot
    # as well.
    unit = 10.0 ** -min(_decimals(printed), _decimals(without))
    coarse = unit > knots / 1e6
    return Check(
        source=f"the talk, {CORPORA[printed.corpus]}, {MODELS[printed.row['model']]}",
        quantity=f"parameters more than {MODELS[plain]}, in millions",
        printed=f"{printed.value - without.value:.1f}",
        recomputed=f"{added:.1f}",
        rule=f"two numbers for each of {knots:,.0f} knots, to the coarser digit printed"
        + (", which allows for one number as well" if coarse else ""),
        verdict=decided(abs(without.value + added - printed.value) < unit / 2, weakly=coarse),
        uses=(printed, without),
    )


def _decimals(number: PrintedNumber) -> int:
    """How many are printed."""
    return len(number.text.partition(".")[2])


def tuned_settings() -> Iterator[Check]:
    """Is each final setting of SM Tables 7 to 9 among the values that were tried?"""
    finals = [final for column in TUNED for final in column_of(TRIED, column)]
    for final in sorted(finals, key=lambda final: final.line):
        yield _tried(final)


def _tried(final: PrintedNumber) -> Check:
    name = final.row["hyperparameter"]
    tried = [
        values for values in column_of(TRIED, "values") if values.row["hyperparameter"] == name
    ]
    stages = [
        values.row["stage"] for values in tried if final.value in map(float, values.text.split())
    ]
    outcome = f"tried in stage {' and '.join(stages)}" if stages else "not among the values tried"
    uses = tried
    if not stages and all(values.row["stage"] != "1" for values in tried):
        default = look("sm_table6_hyperparameters", "mos_moc_ptb", hyperparameter=name)
        uses = [*tried, default]
        outcome = "SM Table 6's value" if default.value == final.value else outcome
    return Check(
        source=f"SM Tables 7 to 9, {TUNED[final.column]}",
        quantity=f"final {name.replace('_', ' ')}",
        printed=final.text,
        recomputed=outcome,
        rule="among the values tried in stage 1 or 2, or SM Table 6's where stage 1 left it at that",
        verdict=decided(not outcome.startswith("not"), weakly=True),
        covers=(final,),
        uses=tuple(uses),
    )
