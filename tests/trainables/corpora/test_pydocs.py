from __future__ import annotations

import sys
from collections import Counter
from pydoc_data.topics import topics

import pytest

from tests.support.other_process import sha256_elsewhere
from trainables.corpora import SPLITS, identity
from trainables.corpora.pydocs import deal, paragraphs, prose_sentences, split_texts
from trainables.errors import UserError

NESTED_TOPICS = [
    "The first topic\n***************\n\nThis is a paragraph of the reference.\n\n   x = [1, 2]\n  "
    " print(x)\n",
    "Another paragraph is\nbefore it.\n\n   This is a paragraph   of the\n   reference.\n",
]


def joined(paragraph: str) -> list[str]:
    return [" ".join(sentence) for sentence in prose_sentences(paragraph)]


def test_prose_becomes_lower_case_sentences() -> None:
    text = (
        '* The \u201cvalue\u201d of *x* is "3.5" (see call()).  It isn\u2019t non-\n  local. [2]\n'
    )
    assert joined(text) == ["the value of x is N ( see call () ) .", "it isn't non-local ."]


@pytest.mark.parametrize(
    "noise",
    [
        '   assert_stmt ::= "assert" expression ["," expression]',
        "   >>> the = a.value\n   >>> to_be(the)",
        "The assert statement\n********************",
        "| The operator          | A description of it   |\n+-----------------------+------+",
        "object.__lt__(self, other)\nobject.__le__(self, other)\nobject.__eq__(self, other)",
    ],
)
def test_only_prose_is_kept(noise: str) -> None:
    assert joined(noise) == []


def test_repeated_paragraph_counts_once() -> None:
    prose = paragraphs(NESTED_TOPICS)
    assert [" ".join(sentence) for paragraph in prose for sentence in paragraph] == [
        "this is a paragraph of the reference .",
        "another paragraph is before it .",
    ]


def test_splits_share_no_paragraph() -> None:
    whole = list(paragraphs(topics[key] for key in sorted(topics)))
    flat = Counter(tuple(tuple(sentence) for sentence in paragraph) for paragraph in whole)
    assert max(flat.values()) == 1
    dealt = deal(whole)
    assert sum(len(dealt[split].splitlines()) for split in SPLITS) == sum(
        len(paragraph) for paragraph in whole
    )


def test_hash_order_changes_no_text() -> None:
    here = identity("pydocs", data_dir=None).sha256
    assert sha256_elsewhere("pydocs", PYTHONHASHSEED="1") == here


def test_missing_documentation_error_names_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    split_texts.cache_clear()
    with pytest.raises(UserError, match=r"no module pydoc_data.*--corpus ptb"):
        split_texts()
