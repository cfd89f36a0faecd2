"""Names and versions of measurements."""

PERPLEXITY = "perplexity@1"
SPECTRUM = "spectrum@1"
TOP_K = "top_k@1"
WORD_SIMILARITY = "word_similarity@1"
KL_RANK = "kl_rank@1"
GRADIENT_BOTTLENECK = "gradient_bottleneck@1"
BENT_SOFTMAX = "bent_softmax@1"
CENTRED_SPECTRUM = "centred_spectrum@1"
SPECTRUM_BY_EPOCH = "spectrum_by_epoch@1"
LAYER_JACOBIAN = "layer_jacobian@2"
LAYER_TASK = "layer_task@2"

PRESS_NOISE = "press_noise@2"
WORD_PAIRS = "word_pairs@1"

NAMES = (
    *(PERPLEXITY, SPECTRUM, TOP_K, WORD_SIMILARITY, KL_RANK, GRADIENT_BOTTLENECK),
    *(SPECTRUM_BY_EPOCH, BENT_SOFTMAX, CENTRED_SPECTRUM),
    *(LAYER_JACOBIAN, LAYER_TASK, PRESS_NOISE, WORD_PAIRS),
)
"""Measurements that a study may request; the last line is for trials without a language model. A
user's own contexts and benchmarks add others, such as "top_k-1a2b3c4d@1"."""
WITH_SPECTRUM = ("spectrum", "layer_jacobian")
"""Measurements, of any version, with singular values."""
TAG_DIGITS = 8
"""Hexadecimal digits of the SHA-256 in names."""
