"""Names and folders of corpora."""

from __future__ import annotations

from pathlib import Path

from trainables.config import MARKOV, PYDOCS, SPAM, canonical_name, is_built_in
from trainables.corpora.published import PUBLISHED_CORPORA
from trainables.corpora.text import SPLITS
from trainables.errors import UserError, did_you_mean

DEFAULT_DATA_DIR = Path("data")
FILES = tuple(f"{split}.txt" for split in SPLITS)


def corpus_name(argument: str) -> str:
    """Return the corpus name in a `--corpus` argument. For a path, the name is its last part."""
    return canonical_name(Path(argument).resolve().name if _is_path(argument) else argument)


def corpus_argument(name: str) -> str:
    """Return the `--corpus` argument that selects the corpus `name`.

    It is `./NAME` if only the current folder has the corpus, otherwise `name`.
    """
    is_resolvable = (
        _is_path(name)
        or is_built_in(name)
        or name in PUBLISHED_CORPORA
        or _is_folder(folder_in(None, name))
    )
    is_here = _is_folder(Path(name)) and Path(name, FILES[0]).is_file()
    return f"./{name}" if is_here and not is_resolvable else name


def _is_path(argument: str) -> bool:
    return "/" in argument or argument in (".", "..")


def resolve_argument(corpus: str, data_dir: Path | None) -> tuple[str, Path | None]:
    """Return the name and absolute data folder of a `--corpus` argument.

    An argument without a slash names a built-in corpus (data folder None), a published one, or a
    folder of `data_dir` (default `data`). An argument with a slash is a path whose last part is the
    name and whose parent is the data folder. Raises UserError if the argument selects no corpus.
    """
    if is_built_in(corpus):
        return canonical_name(corpus), None
    if not _is_path(corpus):
        return corpus, locate(corpus, data_dir).parent
    folder = Path(corpus).resolve()
    if not _is_folder(folder):
        raise UserError(
            f"there is no folder {corpus}. Give the path of a folder with {', '.join(FILES)}."
        )
    if is_built_in(folder.name) or not folder.name:
        name = folder.name or PYDOCS
        raise UserError(f"{corpus} has the name of the built-in corpus {name}. Rename the folder.")
    return folder.name, folder.parent


def locate(name: str, data_dir: Path | None) -> Path:
    """Return the absolute folder `data_dir`/`name`. A published corpus may not be there yet.

    Raises UserError if the corpus is built in, or neither published nor a folder of `data_dir`.
    """
    if is_built_in(name):
        raise UserError(f"the corpus {name} is built in and has no folder. Leave out --data-dir.")
    folder = folder_in(data_dir, name)
    is_folder_name = name not in ("", ".", "..") and "/" not in name
    if is_folder_name and (name in PUBLISHED_CORPORA or _is_folder(folder)):
        return folder
    choices = [PYDOCS, MARKOV, *PUBLISHED_CORPORA, f"{SPAM}-1000"]
    data = folder_in(data_dir)
    choices += sorted(
        entry for entry in names_in(data) - set(choices) if FILES[0] in names_in(data / entry)
    )
    raise UserError(
        f"unknown corpus {name!r}: {did_you_mean(name, choices)}Choose from {', '.join(choices)}, "
        f"or give the path of a folder with {', '.join(FILES)}, for example "
        f"./{name.rsplit('/', 1)[-1] or 'mycorpus'}"
    )


def folder_in(data_dir: Path | None, name: str = "") -> Path:
    """Return the absolute path of `name` in the data folder (default `data`)."""
    return (data_dir or DEFAULT_DATA_DIR).resolve() / name


def names_in(folder: Path) -> frozenset[str]:
    """Return the file names in `folder`; an empty set if the folder cannot be listed."""
    try:
        return frozenset(entry.name for entry in folder.iterdir())
    except OSError:
        return frozenset()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name too long, or a parent without search permission
        return False
