"""The names of the built-in corpora, and the sentences that answer a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainables.config.built_in_corpora import is_built_in, markov_rank, one_name
from trainables.corpora import fetch, locate, resolve_argument
from trainables.errors import UserError


def test_a_generated_language_says_its_rank_in_its_name() -> None:
    ranks = {
        "markov": 100,
        "markov-5": 5,
        "markov-20": 20,
        "markov-500": 500,
        "pydocs": None,
        "ptb": None,
        "mark": None,
    }
    assert {name: markov_rank(name) for name in ranks} == ranks
    assert [name for name in ranks if is_built_in(name)] == ["markov", "markov-5", "markov-20", "markov-500", "pydocs"]


def test_one_language_has_one_name() -> None:
    assert one_name("markov-100") == "markov"
    assert one_name("markov-20") == "markov-20"
    assert resolve_argument("markov-100", Path("anywhere")) == ("markov", None)


@pytest.mark.parametrize("name", ["markov-3", "markov-501", "markov-x", "markov-", "markov-020", "markov-20.0"])
def test_a_rank_that_there_is_not_is_answered_with_one_sentence(name: str, tmp_path: Path) -> None:
    sentence = rf"a number from 5 to 500; got '{name}': try markov-20"
    with pytest.raises(UserError, match=sentence):
        resolve_argument(name, None)
    with pytest.raises(UserError, match=sentence):
        markov_rank(name)
    with pytest.raises(UserError, match=sentence):
        fetch(name, data_dir=tmp_path)


def test_a_language_is_neither_downloaded_nor_a_folder(tmp_path: Path) -> None:
    (tmp_path / "markov-x").mkdir()
    with pytest.raises(UserError, match="markov is built in, with nothing to download"):
        fetch("markov-100", data_dir=tmp_path)
    with pytest.raises(UserError, match="built in and has no folder"):
        locate("markov-20", tmp_path)
    with pytest.raises(UserError, match="rename the folder"):
        resolve_argument(str(tmp_path / "markov-x"), None)
