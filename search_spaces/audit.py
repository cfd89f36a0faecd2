"""Study `published`: printed numbers checked against each other, configs and files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from search_spaces.analyses import Audit
from search_spaces.study import Study
from trainables.config import CorpusConfig, WordPairsConfig

TEXTS: tuple[Literal["ptb", "wikitext-2"], ...] = ("ptb", "wikitext-2")


def trials(corpus: CorpusConfig) -> Iterator[WordPairsConfig]:
    """Yield two trials that count word pairs, because no printed number determines these counts."""
    del corpus
    for text in TEXTS:
        yield WordPairsConfig(seed=0, text=text)


def label(config: WordPairsConfig) -> str:
    """Return a name: "word pairs ptb"."""
    return f"word pairs {config.text}"


STUDY = Study(
    name="published",
    title="The papers' printed numbers, recomputed",
    question=(
        "Which printed numbers of the papers follow from other printed numbers, and which do not?"
    ),
    source=(
        "Every table of On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021) and its "
        "supplement, and the language-modelling table of Ganea et al. (ICML 2019)"
    ),
    trials=trials,
    label=label,
    reads_text=False,
    always_reads=TEXTS,
    trains=False,
    measurements=("word_pairs@1",),
    analyses=(Audit(),),
    deviations=(
        "Only tables that this project stores as data are checked. The qualitative contexts are "
        "positions in the text, not printed numbers; the study qualitative covers them.",
        "Parameter counts are computed from this project's configurations, whose widths are from "
        "SM Table 6.",
        "Standard deviations are assumed to have n \N{MINUS SIGN} 1 in the denominator.",
    ),
)
