from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.faulty_server import write_corpus
from trainables.corpora import identity, locate, resolve_argument
from trainables.errors import UserError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "data" / "novels", train="a b\n", valid="a\n", test="b\n")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("pydocs", "pydocs"),
        ("markov-100", "markov"),
        ("markov-20", "markov-20"),
        ("spam-1000",) * 2,
    ],
)
def test_builtin_corpus_has_no_folder(typed: str, name: str, data: Path) -> None:
    assert resolve_argument(typed, data) == (name, None)
    with pytest.raises(UserError, match="no folder"):
        locate(typed, data)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("markov-3", "markov-5"),
        ("markov-501", "markov-500"),
        *((f"markov-{wrong}", "markov-20") for wrong in ("x", "", "020", "20.0")),
        ("spam-99", "spam-100"),
        ("spam-200001", "spam-200000"),
        ("spam-0100", "spam-100"),
        ("spam-0", "spam-100"),
    ],
)
def test_wrong_number_suggests_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UserError, match=f"'{name}': try {nearest}$"):
        resolve_argument(name, None)


def test_data_folder_resolves_names(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_argument("novels", data) == ("novels", data)
    assert resolve_argument("ptb", data / "absent") == ("ptb", data / "absent")
    monkeypatch.chdir(data.parent)
    assert resolve_argument("novels", None) == ("novels", data)
    assert locate("ptb", None) == data / "ptb"


def test_path_gives_data_folder(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_argument(f"{data}/novels/", None) == ("novels", data)
    monkeypatch.chdir(data)
    assert resolve_argument("./novels", Path("elsewhere")) == ("novels", data)
    name, data_dir = resolve_argument("../data/novels", None)
    assert identity(name, data_dir=data_dir).train_tokens == 3


def test_missing_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        resolve_argument(f"{tmp_path}/nothing", None)


@pytest.mark.parametrize("name", ["pydocs", "markov-x"])
def test_folder_cannot_shadow_builtin_corpus(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(UserError, match="Rename the folder"):
        resolve_argument(str(tmp_path / name), None)


@pytest.mark.parametrize(
    ("typed", "suggestion"),
    [("wikitext2", "wikitext-2"), ("pydoc", "pydocs"), ("novel", "novels"), ("pbt", "ptb")],
)
def test_unknown_corpus_suggests_names(data: Path, typed: str, suggestion: str) -> None:
    with pytest.raises(UserError, match=f"did you mean {suggestion}.*pydocs, markov, ptb"):
        resolve_argument(typed, data)


@pytest.mark.parametrize("name", ["", ".", "..", "../data/novels", "n" * 300])
def test_config_cannot_name_a_path(data: Path, name: str) -> None:
    with pytest.raises(UserError, match="unknown corpus"):
        locate(name, data)
