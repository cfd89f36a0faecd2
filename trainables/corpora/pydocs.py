"""The corpus that needs no download: the English prose of Python's language reference.

CPython contains the reference for `help()` (`pydoc_data.topics`). Code, grammars, tables, headings
and signatures are dropped. So are repeated paragraphs, which would leak train text into the test
split.

Text is lower-cased and split into words and punctuation. Numbers become `N`, as in Penn Treebank,
and each sentence is a line. The text, and so the SHA-256, differs between minor versions of Python.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from trainables.corpora.text import SPLITS
from trainables.errors import UserError

Sentence = list[str]
Paragraph = list[Sentence]

BLOCK_TOKENS = 400
"""Minimum tokens of a block: consecutive paragraphs that go to the same split."""

DEAL = ("train", "train", "train", "train", "valid", "train", "train", "train", "train", "test")
"""Splits of ten consecutive blocks. They alternate, so that all splits cover the same subjects."""

_TOKEN = re.compile(r"[^\W\d]\w*(?:['-]\w+)*|\d[\w.]*(?<!\.)|\(\)|\.\.\.|[=!<>]=|//|[^\w\s]")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+(?=[\"'(]?[A-Z_])")
_BULLET = re.compile(r"^(?:[*-]|\d+\.|\[\d+\])\s+")
_FOOTNOTE_MARK = re.compile(r"\s\[\d+\]")
_MARKUP = re.compile(r"[\"*`]")
_HYPHENATED_BREAK = re.compile(r"(?<=[a-z])-\n\s*(?=[a-z])")
_CODE = re.compile(r">>>|::=|^\s*#|\s{2}#", re.MULTILINE)
_UNDERLINE = re.compile(r"\n\s*([*=\-^~])\1{2,}\s*$")
_PLAIN_PUNCTUATION: dict[int, int | str] = {
    **str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014", "''\"\"--"),
    ord("\u2026"): "...",
}

# Common English words that are not Python keywords: they distinguish prose from code.
_ENGLISH = re.compile(
    r"a|all|also|an|are|at|be|been|but|by|can|does|has|have|how|into|it|its|may|more|no|of|on|only|same|see|some|such"
    r"|than|that|the|then|there|these|they|this|to|use|used|was|were|when|where|which|will"
)
_PROSE_SHARE = 0.06
_SHORTEST_PROSE = 4


@functools.cache
def split_texts() -> dict[str, str]:
    """Return the texts of `train`, `valid` and `test`: a sentence per line, spaces between tokens.

    Raises UserError if this Python has no `pydoc_data`.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise UserError(
            "this Python has no documentation for the corpus 'pydocs' (no module pydoc_data). Use "
            "--corpus ptb or --corpus wikitext-2, or install a complete Python."
        ) from error
    return deal(paragraphs(topics[key] for key in sorted(topics)))


def deal(paragraphs_in_order: Iterable[Paragraph]) -> dict[str, str]:
    """Return the text of each split; blocks of paragraphs go to the splits of `DEAL`."""
    lines: dict[str, list[str]] = {split: [] for split in SPLITS}
    block, block_tokens = 0, 0
    for paragraph in paragraphs_in_order:
        lines[DEAL[block % len(DEAL)]].extend(" ".join(sentence) for sentence in paragraph)
        block_tokens += sum(len(sentence) for sentence in paragraph)
        if block_tokens >= BLOCK_TOKENS:
            block, block_tokens = block + 1, 0
    return {split: "".join(line + "\n" for line in lines[split]) for split in SPLITS}


def paragraphs(texts: Iterable[str]) -> Iterator[Paragraph]:
    """Yield every prose paragraph once, as tokenised sentences, in order of appearance."""
    keys: set[tuple[str, ...]] = set()
    for text in texts:
        for paragraph in re.split(r"\n\s*\n", text):
            sentences = prose_sentences(paragraph)
            key = tuple(token for sentence in sentences for token in sentence)
            if sentences and key not in keys:
                keys.add(key)
                yield sentences


def prose_sentences(paragraph: str) -> list[Sentence]:
    """Return the tokens of each sentence; [] for a paragraph that is not prose."""
    if _CODE.search(paragraph) or _UNDERLINE.search(paragraph):
        return []
    text = " ".join(
        _HYPHENATED_BREAK.sub("-", paragraph.translate(_PLAIN_PUNCTUATION).strip()).split()
    )
    text = _FOOTNOTE_MARK.sub("", _BULLET.sub("", text))
    words = text.lower().split()
    english_words = sum(_ENGLISH.fullmatch(word.strip(".,;:()")) is not None for word in words)
    if len(words) < _SHORTEST_PROSE or text[0] in "|+" or english_words < _PROSE_SHARE * len(words):
        return []
    return [tokens for sentence in _SENTENCE_END.split(text) if (tokens := _tokens(sentence))]


def _tokens(sentence: str) -> Sentence:
    tokens = _TOKEN.findall(_MARKUP.sub("", sentence).lower())
    return ["N" if token[0].isdigit() else token for token in tokens]
