"""Every config class: the complete description of a trial, and its identity."""

from trainables.config.built_in_corpora import (
    MARKOV,
    MARKOV_TOKENS,
    MARKOV_TYPES,
    PYDOCS,
    SPAM,
    SPAM_REPEATS,
    SPAM_TEXTS,
    is_built_in,
    is_generated,
    markov_rank,
    one_name,
    spam_floor,
    spam_symbols,
)
from trainables.config.contexts import (
    Context,
    ContextsFile,
    even_contexts,
    published_contexts,
    read_contexts,
    require_in_text,
)
from trainables.config.dirichlet import DirichletConfig, FitConfig
from trainables.config.experiment import (
    ExperimentConfig,
    PressNoiseConfig,
    TrueRankConfig,
    WordPairsConfig,
)
from trainables.config.frozen import Frozen, completed, identity
from trainables.config.hidden_layers import (
    DenseLayerConfig,
    ExpertsLayerConfig,
    HiddenLayerConfig,
    LayerJacobianConfig,
    LayerTaskConfig,
)
from trainables.config.keys import dotted_keys, flat_values, replaced, value_at, with_values
from trainables.config.kinds import (
    KINDS,
    AnyConfig,
    LanguageTrialConfig,
    output_layer_of,
    read_config,
)
from trainables.config.language_model import (
    MIN_STREAM,
    AveragingConfig,
    CorpusConfig,
    EtAsgdConfig,
    EvaluationConfig,
    LanguageModelConfig,
    NtAsgdConfig,
    TrainingConfig,
    TrialConfig,
)
from trainables.config.measurement_names import (
    BENT_SOFTMAX,
    CENTRED_SPECTRUM,
    GRADIENT_BOTTLENECK,
    KL_RANK,
    LAYER_JACOBIAN,
    LAYER_TASK,
    NAMES,
    PERPLEXITY,
    PRESS_NOISE,
    SPECTRUM,
    SPECTRUM_BY_EPOCH,
    TAG_DIGITS,
    TOP_K,
    WITH_SPECTRUM,
    WORD_PAIRS,
    WORD_SIMILARITY,
)
from trainables.config.model_sizes import head_products, mixture_products, model_size
from trainables.config.output_layer import (
    SOFTCAPS,
    CustomConfig,
    GssConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MixtureConfig,
    MocConfig,
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    PlifConfig,
    SigSoftmaxConfig,
    SoftcapConfig,
    SoftmaxConfig,
    chunk_rows,
    defined_here,
    layer_files,
    layer_parameters,
)
from trainables.config.text_file import TextFile
from trainables.config.transformer import (
    TransformerConfig,
    TransformerTrainingConfig,
    TransformerTrialConfig,
)
