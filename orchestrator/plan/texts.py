"""Which text a trial reads, where not all trials of a study read the same."""

from __future__ import annotations

from trainables.config import AnyConfig, LanguageTrialConfig, is_generated
from trainables.corpora import CorpusIdentity, identity


def text_of(config: AnyConfig, corpus: CorpusIdentity) -> CorpusIdentity:
    """The identity of the text that the trial reads: of a generated language that it names itself,
    else the study's."""
    if not isinstance(config, LanguageTrialConfig):
        return corpus
    name = config.corpus.name
    return identity(name, data_dir=None) if name != corpus.name and is_generated(name) else corpus
