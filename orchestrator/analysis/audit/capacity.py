"""Parameter counts from the project's configs, and the talk's from each other."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analysis.audit.check import AVERAGING, CORPORA, MODELS, Check, Place, Printed, decided, look
from search_spaces.awd_lstm import awd_lstm
from search_spaces.fair_capacity import TUNING
from search_spaces.models import trial
from search_spaces.published import rows
from trainables.config import CorpusConfig, TrialConfig
from trainables.config.output_layer import MosConfig
from trainables.corpora.published_corpora import PUBLISHED_CORPORA
from trainables.parameters import in_millions, parameter_count

DIGITS = "to the two decimals of a million printed, cut off, not rounded"
CUT_OFF = f"arithmetic on the configuration of SM Table 6: {DIGITS}"
OF_TEXT = (
    f"arithmetic on the widths of the text (d = d' = 280 or 340) and the MoS configuration of SM Table 6: {DIGITS}"
)
TALK = {"softmax": "softmax", "lms_plif_1e5": "lms_plif", "mos_15": "mos", "mos_15_plif_1e6": "mos_plif"}
KNOTS = {"lms_plif_1e5": ("softmax", 1e5), "mos_15_plif_1e6": ("mos_15", 1e6)}
"""A model of the talk with a PLIF, the one without, and the knots."""
WIDTHS = ("dim_embedding", "dim_hidden", "dim_context", "mos_mixtures", "plif_knots")


def checks() -> Iterator[Check]:
    """Tables 2 and 5, SM Tables 4, 5, 10 and 11, the text's 16.35M, and the talk's table."""
    for line, row in enumerate(rows("table2_seeds")):
        yield _count("Table 2", "table2_seeds", line, _config(row["corpus"], row["model"]))
    for line, row in enumerate(rows("sm_table10_11_averaging")):
        name = f"{'SM Table 10' if row['corpus'] == 'ptb' else 'SM Table 11'}, {AVERAGING[row['averaging']]}"
        yield _count(name, "sm_table10_11_averaging", line, _config(row["corpus"], row["model"]))
    for line, row in enumerate(rows("sm_table4_5_mos_k")):
        config = awd_lstm(_corpus(row["corpus"]), MosConfig(mixtures=int(row["mixtures"])))
        name = "SM Table 4" if row["corpus"] == "ptb" else "SM Table 5"
        yield _count(name, "sm_table4_5_mos_k", line, config)
    for line, row in enumerate(rows("table5_fair_capacity")):
        config = TUNING.sides[row["model"]](_corpus("ptb"))
        yield _count("Table 5", "table5_fair_capacity", line, config, of_text=True)
    yield _softmax_dagger()
    for row in rows("ganea_language_modelling"):
        yield _of_talk(row["corpus"], row["model"])
        if row["model"] in KNOTS:
            yield _two_a_knot(row["corpus"], row["model"])


def parameters(config: TrialConfig) -> int:
    """Of a model on the whole vocabulary of its corpus."""
    return parameter_count(config, PUBLISHED_CORPORA[config.corpus.name].vocabulary_size)


def _corpus(name: str) -> CorpusConfig:
    """The text itself does not matter to a count."""
    return CorpusConfig(name=name, sha256="0" * 64)


def _config(corpus: str, model: str) -> TrialConfig:
    return trial(_corpus(corpus), model)


def _count(source: str, table: str, line: int, config: TrialConfig, *, of_text: bool = False) -> Check:
    row = rows(table)[line]
    label = MODELS[row["model"]] if "model" in row else f"K={row['mixtures']}"
    found, printed = in_millions(parameters(config)), float(row["params_millions"])
    return Check(
        source=f"{source}, {CORPORA[config.corpus.name]}, {label}",
        what="parameters, in millions",
        printed=f"{printed:.2f}",
        recomputed=found,
        rule=OF_TEXT if of_text else CUT_OFF,
        verdict="agrees" if found == f"{printed:.2f}" else "differs",
        covers=(Place(table, line, "params_millions"),),
        uses=(
            *(_widths_beside_text() if of_text else _widths()),
            *([Place(table, line, "mixtures")] if "mixtures" in row else []),
        ),
    )


def _widths() -> tuple[Place, ...]:
    """The cells of SM Table 6 that a count rests on."""
    return tuple(
        Place("sm_table6_hyperparameters", line, column)
        for line, row in enumerate(rows("sm_table6_hyperparameters"))
        if row["hyperparameter"] in WIDTHS
        for column in row
        if column not in ("hyperparameter", "unit_note") and row[column]
    )


def _widths_beside_text() -> tuple[Place, ...]:
    """Those that the text leaves to SM Table 6: the hidden width of MoS on PTB, and its number of mixtures."""
    wanted = ("dim_hidden", "mos_mixtures")
    return tuple(
        place
        for place in _widths()
        if place.column == "mos_moc_ptb" and rows(place.table)[place.line]["hyperparameter"] in wanted
    )


def _softmax_dagger() -> Check:
    found = in_millions(parameters(TUNING.sides["softmax_dagger"](_corpus("ptb"))))
    return Check(
        source="text, Softmax\N{DAGGER}",
        what="parameters, in millions",
        printed="16.35",
        recomputed=found,
        rule=OF_TEXT,
        verdict="agrees" if found == "16.35" else "differs",
        uses=_widths_beside_text(),
    )


def _of_talk(corpus: str, model: str) -> Check:
    printed = _talk(corpus, model)
    decimals = len(printed.text.partition(".")[2])
    exact = parameters(_config(corpus, TALK[model])) / 1e6
    cut, rounded = int(exact * 10**decimals) / 10**decimals, round(exact, decimals)
    return Check(
        source=f"the talk, {CORPORA[corpus]}, {MODELS[model]}",
        what="parameters, in millions",
        printed=printed.text,
        recomputed=f"{exact:.2f}",
        rule="arithmetic on the AAAI paper's configuration, cut off or rounded to the digits printed; the talk does "
        "not print its own configuration, so it need not follow",
        verdict="compatible" if printed.value in (cut, rounded) else "explained",
        covers=(printed.place,),
    )


def _two_a_knot(corpus: str, model: str) -> Check:
    """What the talk itself adds for its function."""
    plain, knots = KNOTS[model]
    printed, without = _talk(corpus, model), _talk(corpus, plain)
    found = without.value + 2 * knots / 1e6
    # The softmax of WikiText-2 is printed without decimals, which leaves room for one number a knot as well.
    coarse = max(_unit(printed), _unit(without)) > knots / 1e6
    fits = abs(found - printed.value) < max(_unit(printed), _unit(without)) / 2
    return Check(
        source=f"the talk, {CORPORA[corpus]}, {MODELS[model]}",
        what=f"parameters more than {MODELS[plain]}, in millions",
        printed=f"{printed.value - without.value:.1f}",
        recomputed=f"{2 * knots / 1e6:.1f}",
        rule=f"two numbers for each of {knots:,.0f} knots, to the coarser digit printed"
        + (", which allows for one number as well" if coarse else ""),
        verdict=decided(fits, weakly=coarse),
        uses=(printed.place, without.place),
    )


def _unit(number: Printed) -> float:
    """Of the last digit that is printed."""
    return 10.0 ** -len(number.text.partition(".")[2])


def _talk(corpus: str, model: str) -> Printed:
    return look("ganea_language_modelling", "params_millions", corpus=corpus, model=model)
