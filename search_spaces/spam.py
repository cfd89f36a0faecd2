"""Output layers on a trivial language over V symbols (Godey and Artzi 2026, arXiv 2603.10145).

The least loss on `spam-V` is known: ln V nats per text. The paper blames the head, which reduces a
gradient of V numbers to its width d. Only d changes here; recurrent layers before the last keep
their width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.study import GroupTable, Lines, Study, Threshold
from trainables.config import (
    SPAM,
    AnyConfig,
    CorpusConfig,
    EtAsgdConfig,
    EvaluationConfig,
    GssConfig,
    LanguageModelConfig,
    MosConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftcapConfig,
    SoftmaxConfig,
    TrainingConfig,
    TrialConfig,
    spam_symbols,
)
from trainables.corpora import identity

LAYERS: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    SigSoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    MosConfig(mixtures=3, latent_dropout=0.0),
    SoftcapConfig(cap=15.0),
)
SYMBOLS = (500, 1_000, 2_000, 4_000, 32_000, 128_000)
WIDTHS = (8, 12, 16, 20, 24, 32, 48, 64, 128, 256)
SEEDS = (1, 2, 3)
HIDDEN_WIDTH = 64
EPOCHS, EPOCH_TOKENS = 10, 32_000
# With no warm-up, or with a longer one, the study would compare how layers start.
WARM_UP_SHARE = 0.1
# In nats per token. At V = 1,000, an untrained model has 60 times this excess loss.
LEARNED = 0.1
EXCESS = "excess_cross_entropy"
ALL = tuple(layer.name for layer in LAYERS)
UNCAPPED = tuple(name for name in ALL if name != "softcap")
# V, widths, layers, number of seeds. Widths surround the smallest one that learns. A step's time is
# proportional to V d, so slow trials get fewer seeds.
QUICK = (
    (500, (8, 12, 16), UNCAPPED, 2),
    (500, (16, 24), ("softcap",), 2),
    (1_000, (8, 16, 32), ALL, 3),
    (1_000, (12,), UNCAPPED, 3),
    (1_000, (24,), ("softcap",), 3),
    (2_000, (16, 20, 24), UNCAPPED, 2),
    (2_000, (32, 48), ("softcap",), 2),
    (4_000, (16, 32), ALL, 1),
    (4_000, (24, 32), UNCAPPED, 2),
    (4_000, (48,), ("softmax", "sigsoftmax", "gss"), 1),
    (4_000, (48, 64), ("softcap",), 1),
    (32_000, (32,), ("softmax", "softcap"), 1),
)
CLAIM = (
    "No printed width was found to compare with: only the abstract of Godey and Artzi (2026, arXiv "
    "2603.10145) could be read. It states that the bottleneck makes "
    "\N{LEFT DOUBLE QUOTATION MARK}trivial patterns unlearnable\N{RIGHT DOUBLE QUOTATION MARK} and "
    "that \N{LEFT DOUBLE QUOTATION MARK}95-99% of the gradient norm is suppressed by the output "
    "layer\N{RIGHT DOUBLE QUOTATION MARK}. It gives no width or number of symbols."
)
SMOKE = (1_000, 8, 1)


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Yield 900 small trials; V, not `corpus`, sets the language."""
    del corpus
    for symbols in SYMBOLS:
        text = identity(f"{SPAM}-{symbols}", data_dir=None)
        for width in WIDTHS:
            for layer in LAYERS:
                for seed in SEEDS:
                    yield trial(
                        CorpusConfig(name=text.name, sha256=text.sha256),
                        layer,
                        width=width,
                        seed=seed,
                    )


def trial(corpus: CorpusConfig, layer: OutputLayerConfig, *, width: int, seed: int) -> TrialConfig:
    """Return a trial without dropout and regularisers: there is nothing to memorise."""
    return TrialConfig(
        seed=seed,
        corpus=corpus,
        model=LanguageModelConfig(
            embedding_width=width,
            hidden_width=HIDDEN_WIDTH,
            context_width=width,
            dropout_embedding_matrix=0.0,
            dropout_embedding=0.0,
            dropout_hidden=0.0,
            dropout_output=0.0,
            dropconnect=0.0,
            start="scaled",
        ),
        output_layer=layer,
        training=TrainingConfig(
            batch_size=20,
            bptt=20,
            learning_rate=0.02,
            optimizer="adam",
            warm_up_tokens=round(WARM_UP_SHARE * EPOCHS * EPOCH_TOKENS),
            weight_decay=0.0,
            activation_regularisation=0.0,
            temporal_activation_regularisation=0.0,
            averaging=EtAsgdConfig(switch_epoch=EPOCHS - 2),
            epochs=EPOCHS,
            epoch_tokens=EPOCH_TOKENS,
        ),
        evaluation=EvaluationConfig(
            valid_tokens=4_000, test_tokens=40_000, test_batch_size=10, rank_contexts=1_024
        ),
    )


def label(config: AnyConfig) -> str:
    """Return a name: "softmax V=1000 d=16 seed=1"."""
    assert isinstance(config, TrialConfig)
    layer, width = config.output_layer.name, config.model.embedding_width
    return f"{layer} V={_symbols(config)} d={width} seed={config.seed}"


def _symbols(config: TrialConfig) -> int:
    symbols = spam_symbols(config.corpus.name)
    assert symbols is not None
    return symbols


def quick_trials(configs: Sequence[AnyConfig]) -> list[AnyConfig]:
    """Return trials that two cores train in minutes."""
    return [config for config in configs if isinstance(config, TrialConfig) and _is_quick(config)]


def _is_quick(config: TrialConfig) -> bool:
    return any(
        _symbols(config) == symbols
        and config.model.embedding_width in widths
        and config.output_layer.name in layers
        and config.seed in SEEDS[:seeds]
        for symbols, widths, layers, seeds in QUICK
    )


def corner(configs: Sequence[AnyConfig]) -> list[AnyConfig]:
    """Return two layers at one V and d, with a sixteenth of the training."""
    short_training = {
        "epochs": 2,
        "epoch_tokens": 10_000,
        "warm_up_tokens": 2_000,
        "averaging": EtAsgdConfig(switch_epoch=1),
    }
    return [
        config.model_copy(update={"training": config.training.model_copy(update=short_training)})
        for config in configs
        if isinstance(config, TrialConfig)
        and (_symbols(config), config.model.embedding_width, config.seed) == SMOKE
        and config.output_layer.name in ("softmax", "softcap")
    ]


STUDY = Study(
    name="spam",
    title="A trivial language over many symbols",
    question=(
        "With each output layer, at which width does a model learn that every text repeats its "
        "first symbol?"
    ),
    source="Lost in Backpropagation: The LM Head is a Gradient Bottleneck (arXiv 2603.10145), "
    "SpamLang",
    trials=trials,
    label=label,
    corner=corner,
    quick=quick_trials,
    reads_text=False,
    scaled=False,
    measurements=("perplexity@1",),
    analyses=(
        Threshold(
            x="model.embedding_width",
            by="output_layer.name",
            baseline="softmax",
            over="corpus.name",
            over_name="V",
            metric=EXCESS,
            value=LEARNED,
            title="Width at which the language is learned",
            claim=CLAIM,
        ),
        Lines(
            x="model.embedding_width",
            by="output_layer.name",
            metrics=(EXCESS,),
            panel="corpus.name",
            title="Remaining gap by width and number of symbols",
            logarithmic_x=True,
            logarithmic_y=(EXCESS,),
            note=(
                "The gap is the test loss minus ln V / 8, the entropy of the language in nats per "
                "token: texts have eight tokens, of which only the first is uncertain. The "
                f"language is learned at a gap of at most {LEARNED}. More training changes the "
                "width at which that gap is reached."
            ),
        ),
        GroupTable(
            metrics=(EXCESS, "test_perplexity", "parameters", "seconds"), title="By layer, V and d"
        ),
    ),
    deviations=(
        "The source trains Transformers. This study trains an AWD-LSTM whose first two layers "
        f"have width {HIDDEN_WIDTH} at every d: d narrows only the head and the weights tied to "
        "it.",
        "The source's texts, sizes and training were not read in full. Seven repeats, the end of "
        "text and all other settings of the training are this project's choices.",
        f"At every V, models train on {EPOCHS * EPOCH_TOKENS:,} tokens at every scale except "
        "smoke. A symbol is then seen in 80 texts at V = 500 and in 10 at V = 4,000. How the "
        "required width grows with V depends on this.",
        "MoS has 3 mixtures without dropout and more parameters than the others: at equal d it is "
        "the larger model.",
    ),
)
