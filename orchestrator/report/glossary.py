"""Meanings of the words on a page, for a reader who has only the page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

from orchestrator.analysis import FlatResults
from orchestrator.report import formats

METRICS = {
    "train_perplexity": "exp of the mean cross-entropy on the train text, at the kept epoch, "
    "with dropout on",
    "valid_perplexity": "exp of the mean cross-entropy on the validation text, without dropout",
    "test_perplexity": "exp of the mean cross-entropy of the next word, in nats: the lower, the "
    "better",
    "generalisation_gap": "test perplexity minus train perplexity",
    "excess_cross_entropy": "mean cross-entropy minus the entropy of the true distribution: 0 if "
    "the model has learned this distribution exactly",
    "kept_epoch": "the epoch with the lowest validation loss; its weights are kept and measured",
    "press_rank": "number of singular values of the log-P matrix (one row per context, one column "
    "per word) above a tolerance: 0.5 \N{SQUARE ROOT}(rows + columns + 1), times the largest "
    "singular value, times the precision of float32",
    "effective_rank_1e-3": "the smallest number of singular values whose squares add up to the sum "
    "of all squares, except for the share in brackets",
    "entropy_rank": "exp of the entropy of the singular values divided by their sum (Roy and "
    "Vetterli 2007)",
    "kl_rank_1e-3": "the smallest rank at which the softmax of a least-squares approximation of "
    "log P is close to P: their mean KL divergence over contexts is at most the given number of "
    "nats. A better approximation may need a lower rank, so this is an upper bound",
    "gradient_lost_share": "The gradient is P minus the one-hot vector of the true next word. This "
    "is the share of its squared length that no step of the context vector can change in log P, "
    "as a mean over contexts",
    "gradient_angle_degrees": "The gradient is P minus the one-hot vector of the true next word. A "
    "small step of the context vector that lowers the loss changes log P. This is the mean angle "
    "between the gradient and this change (up to its sign)",
    "gradient_norm_lost": "for a plain softmax, the Frobenius norm of the gradients' part in the "
    "kernel of the output weights' transpose, divided by their whole norm (Godey and Artzi 2026)",
    "gradient_norm_lost_null": "\N{SQUARE ROOT}(1 \N{MINUS SIGN} d/V) for output weights of rank d "
    "and V words: the mean leverage of V rows in d dimensions is d/V, regardless of what was "
    "learned",
    "seconds_per_epoch": "median training time of an epoch, without the first (a worker warms up)",
    "stable_rank": "sum of the squared singular values, divided by the largest square",
}
STATISTICS = {
    "interval": "95% of such intervals contain the true value, if the method's assumptions hold",
    "p": "the probability of a result at least this extreme if there were no effect",
    "Holm": "Holm's correction of p values for several tests: the chance of any false finding "
    "among them stays below 5%",
    "Hedges' g": "a difference divided by its standard deviation, corrected for few trials: "
    "0.2 is small, 0.8 large",
}
NAMED = {"effective_rank_1e-3": "effective rank", "kl_rank_1e-3": "KL rank"}
"""Column -> its term, if other columns have the same term."""
LAYERS = {
    "softmax": "log P = log_softmax(x) of the logits x = W h + b; its matrix has a rank of at "
    "most d + 2",
    "sigsoftmax": "log_softmax(2x \N{MINUS SIGN} ln(1 + e^x)) (Kanai et al. 2018)",
    "gss": "Generalized SigSoftmax: log_softmax(f(x)), where f bends smoothly at x = c by an "
    "amount that k sets. k = 1 is softmax; c = 0 with k = 2 is sigsoftmax",
    "softcap": "log_softmax(f(x)) with bounded f. Form tanh: cap tanh(x / cap), as in Gemma 2. "
    "Form sigmoid: 23 sigmoid((x + 5) / 7.5), as in modded-nanogpt, with its three numbers in "
    "proportion to the cap",
    "lms_plif": "log_softmax(f(x)) with a learned piecewise linear increasing function f (Ganea "
    "et al. 2019)",
    "lms_plif_frozen": "lms_plif with untrained slopes (a dagger in the paper)",
    "monotone_nn": "log_softmax(f(x)), f an increasing network of one hidden layer",
    "mos": "Mixture of Softmaxes: K softmaxes of K context vectors, mixed (Yang et al. 2018)",
    "moc": "Mixture of Contexts: K context vectors mixed before one softmax; rank as for softmax",
    "mos_plif": "mos with one piecewise linear function on all logits",
}
IN_NAMES = {
    "ET-ASGD": "SGD that changes to averaged SGD after a fixed epoch",
    "NT-ASGD": "SGD that changes to averaged SGD once the validation loss has stopped falling",
    "dem=": "dropout of the embedding matrix, which drops whole words",
    "de=": "dropout of the embedded words",
    "dh=": "dropout between the LSTM layers",
    "do=": "dropout of the last LSTM layer's output",
    "noise=": "standard deviation of the noise that is added to the embedded words",
    "wd=": "weight decay",
    "mos_dagger": "MoS with batch size 12 and d' = d = 280 at the paper's scale (a dagger in the "
    "paper)",
    "softmax_dagger": "softmax with the sizes of mos_dagger, so fewer parameters (a dagger in "
    "the paper)",
    "softmax_double_dagger": "softmax with d' = d = 340, as many parameters as mos_dagger (a "
    "double dagger in the paper)",
}


def terms(results: FlatResults, *, own: bool = False) -> list[tuple[str, str]]:
    """Return the terms that the results use, with their meanings.

    A user's `own` study has only those of statistics.
    """
    if own:
        return list(STATISTICS.items())
    layers = {record.get("output_layer.name") for record in results.records}
    words = {word for one in results.records for word in re.findall(r"[^\s=]+=?", one["name"])}
    return [
        *STATISTICS.items(),
        *(
            (NAMED.get(name, formats.title(name)), text)
            for name, text in METRICS.items()
            if name in results.metric_columns
        ),
        *((name, text) for name, text in LAYERS.items() if name in layers),
        *((name, text) for name, text in IN_NAMES.items() if name in words),
    ]


def linked(sentence: str, terms: Sequence[tuple[str, str]]) -> Markup:
    """Return the sentence, escaped, with a link from each term's first use to its meaning."""
    numbers = {str(escape(term)): number for number, (term, _) in enumerate(terms, 1)}
    longest_first = sorted(map(re.escape, numbers), key=len, reverse=True)
    return Markup(
        re.sub(
            rf"(?<![\w#&])({'|'.join(longest_first)})(?![\w;])",
            lambda match: (
                f'<a href="#term-{number}">{match[0]}</a>'
                if (number := numbers.pop(match[0], 0))
                else match[0]
            ),
            str(escape(sentence)),
        )
    )
