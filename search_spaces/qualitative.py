"""True next words among the five likeliest (AAAI 2021, Fig. 3, SM Table 2)."""

from __future__ import annotations

from collections.abc import Iterator

from search_spaces.models import SIX, model_and_averaging, trial
from search_spaces.published import predictions
from search_spaces.study import GroupTable, Predictions, Study
from trainables.config import CorpusConfig, TrialConfig

MODELS = {
    "Softmax": "softmax ET-ASGD",
    "SS": "sigsoftmax ET-ASGD",
    "GSS": "gss ET-ASGD",
    "LMS-PLIF": "lms_plif ET-ASGD",
    "MoS": "mos ET-ASGD",
    "MoC": "moc ET-ASGD",
    "MoS*": "mos NT-ASGD",
    "MoC*": "moc NT-ASGD",
    "MoS**": "mos (Yang)",
    "MoC**": "moc (Yang)",
}
"""Our group name for each model name in SM Table 2. No trial trains the last two (Yang et al.
2018)."""


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Yield six models with ET-ASGD, and the two mixtures with NT-ASGD."""
    for model in SIX:
        yield trial(corpus, model)
    for model in ("mos", "moc"):
        yield trial(corpus, model, averaging="NT-ASGD")


STUDY = Study(
    name="qualitative",
    title="Likeliest next words at chosen contexts",
    question=(
        "Do high-rank models have the true next word among their five likeliest when low-rank "
        "models do not?"
    ),
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), Fig. 3 and SM "
    "Table 2",
    trials=trials,
    label=model_and_averaging,
    corpora=("ptb",),
    measurements=("perplexity@1", "spectrum@1", "top_k@1"),
    analyses=(
        Predictions(
            source="SM Table 2",
            published={
                "ptb": {MODELS[model]: contexts for model, contexts in predictions().items()}
            },
        ),
        GroupTable(metrics=("valid_perplexity", "test_perplexity", "press_rank")),
    ),
    deviations=(
        "Fig. 3 is rebuilt from SM Table 2. That table also has the MoS and MoC of Yang et al. "
        "(2018), at their six contexts; no trial trains these.",
        "On corpora other than Penn Treebank, the contexts are eighteen evenly spaced positions of "
        "the test text.",
        "For the contexts named random 4, 5 and 6, SM Table 2 prints the same probabilities for "
        "all models. Compare only their words.",
    ),
)
