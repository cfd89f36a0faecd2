"""The text that a trial reads, and its sizes."""

from __future__ import annotations

from trainables.config import AnyConfig, LanguageTrialConfig, is_generated
from trainables.corpora import CorpusIdentity, identity


def text_of(config: AnyConfig, corpus: CorpusIdentity) -> CorpusIdentity:
    """Return the text that the trial reads: a generated language of its config, or `corpus`."""
    if not isinstance(config, LanguageTrialConfig):
        return corpus
    name = config.corpus.name
    return identity(name, data_dir=None) if name != corpus.name and is_generated(name) else corpus


def vocabulary_size(config: LanguageTrialConfig, corpus: CorpusIdentity) -> int:
    """Return the trial's vocabulary size, with its `vocabulary_limit` applied."""
    return text_of(config, corpus).limited_vocabulary_size(config.corpus.vocabulary_limit)


def valid_tokens(config: LanguageTrialConfig, corpus: CorpusIdentity) -> int:
    """Return the number of validation tokens."""
    return min(corpus.valid_tokens, config.evaluation.valid_tokens or corpus.valid_tokens)


def test_tokens(config: LanguageTrialConfig, corpus: CorpusIdentity) -> int:
    """Return the number of test tokens."""
    return min(corpus.test_tokens, config.evaluation.test_tokens or corpus.test_tokens)
