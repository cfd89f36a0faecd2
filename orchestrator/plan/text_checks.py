"""Whether a text is long enough for a trial's batches, and whether its windows fit together."""

from __future__ import annotations

from trainables.config import MIN_STREAM, LanguageTrialConfig, TransformerTrialConfig
from trainables.corpora import CorpusIdentity
from trainables.errors import UserError


def require_text(config: LanguageTrialConfig, corpus: CorpusIdentity) -> None:
    """Raise UserError where a split is too short for its batch: each parallel stream needs
    MIN_STREAM tokens, and one that a Transformer is trained on a whole window and the token behind
    it."""
    evaluation, training = config.evaluation, config.training
    valid_tokens = min(corpus.valid_tokens, evaluation.valid_tokens or corpus.valid_tokens)
    test_tokens = min(corpus.test_tokens, evaluation.test_tokens or corpus.test_tokens)
    stream = MIN_STREAM
    if isinstance(config, TransformerTrialConfig):
        _require_one_window(config)
        stream = max(MIN_STREAM, config.training.window + 1)
    for split, tokens, batch, least in (
        ("train", corpus.train_tokens, training.batch_size, stream),
        ("valid", valid_tokens, evaluation.valid_batch_size, MIN_STREAM),
        ("test", test_tokens, evaluation.test_batch_size, MIN_STREAM),
    ):
        if tokens < least * batch:
            window = f" with windows of {least - 1}" if least > MIN_STREAM else ""
            raise UserError(
                f"a batch of {batch}{window} needs at least {least * batch} tokens, but the "
                f"{split} text of "
                f"{corpus.name} has {tokens}; use a longer corpus or a smaller batch size"
            )


def _require_one_window(config: TransformerTrialConfig) -> None:
    trained, measured = config.training.window, config.evaluation.window
    if trained != measured:
        raise UserError(
            "a Transformer's context is its window, so evaluation.window is the same as "
            "training.window; got "
            f"{measured} and {trained}: set both, as in --set training.window={trained} --set "
            f"evaluation.window={trained}"
        )
