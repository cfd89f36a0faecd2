"""Corpora: text in, token ids out. Names, identities, download, verification and encoding.

`Corpus` and `load` need numpy and live in `trainables.corpora.encoded`; they are imported on first
use, so that a plan, which needs identities only, stays fast."""

from typing import TYPE_CHECKING

from trainables import on_first_use
from trainables.corpora.benchmarks import (
    Benchmark,
    BenchmarkFolder,
    WordPair,
    parse_pairs,
    read_folder,
    read_published,
)
from trainables.corpora.fetching import ensure, fetch
from trainables.corpora.folders import (
    DEFAULT_DATA_DIR,
    corpus_argument,
    corpus_name,
    locate,
    resolve_argument,
)
from trainables.corpora.published import (
    NO_TEXT,
    PUBLISHED,
    PUBLISHED_CORPORA,
    WORD_SIMILARITY,
    CorpusIdentity,
)
from trainables.corpora.source import check, identity, read_texts, test_words
from trainables.corpora.text import SPLITS, UNKNOWN, tokenise

if TYPE_CHECKING:
    from trainables.corpora.encoded import Corpus, load
    from trainables.corpora.markov import MarkovLanguage, markov_language
else:
    __getattr__ = on_first_use(__name__, "encoded", "markov")
