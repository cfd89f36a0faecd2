"""The measurements by name and version, for plans: imports neither torch nor numpy."""

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
"""What a study may ask for; the last line of trials that train no language model. A user's own
contexts and benchmarks make others: "top_k-1a2b3c4d@1"."""
WITH_SPECTRUM = ("spectrum", "layer_jacobian")
"""Those, of any version, that leave singular values beside their metrics."""
TAG_DIGITS = 8
"""Hexadecimal digits of a SHA-256 that tell such names apart."""
