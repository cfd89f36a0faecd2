"""Where the files of a corpus are: names, paths and the errors of getting them wrong."""

from __future__ import annotations

from pathlib import Path

from trainables.config import MARKOV, PYDOCS, SPAM, is_built_in, one_name
from trainables.corpora.published import PUBLISHED_CORPORA
from trainables.corpora.text import SPLITS
from trainables.errors import UserError, did_you_mean

DEFAULT_DATA_DIR = Path("data")
FILES = tuple(f"{split}.txt" for split in SPLITS)


def corpus_name(argument: str) -> str:
    """What a corpus is called that is typed like this after `--corpus`: a folder given by path by
    its last part."""
    return one_name(Path(argument).resolve().name if _is_path(argument) else argument)


def corpus_argument(name: str) -> str:
    """What to type here after `--corpus` for the corpus of that name: the path of a folder that
    lies here, and in no data folder."""
    is_known = (
        _is_path(name)
        or is_built_in(name)
        or name in PUBLISHED_CORPORA
        or _is_folder(folder_in(None, name))
    )
    lies_here = _is_folder(Path(name)) and Path(name, FILES[0]).is_file()
    return f"./{name}" if lies_here and not is_known else name


def _is_path(argument: str) -> bool:
    return "/" in argument or argument in (".", "..")


def resolve_argument(corpus: str, data_dir: Path | None) -> tuple[str, Path | None]:
    """Turn what the user typed after `--corpus` into a corpus name and the absolute data folder it
    lies in.

    A name is that of a built-in corpus, a published corpus, or a folder of `data_dir` (default
    `data`). Anything with a slash is the path of a folder: its last part is the name and its parent
    the data folder, whatever `data_dir` says. The data folder of a built-in corpus is returned as
    None, as it has no files.

    Raises UserError where there is no such corpus (with the nearest names), language of that rank,
    or folder."""
    if is_built_in(corpus):
        return one_name(corpus), None
    if not _is_path(corpus):
        return corpus, locate(corpus, data_dir).parent
    folder = Path(corpus).resolve()
    if not _is_folder(folder):
        raise UserError(
            f"a corpus given by path is a folder with {', '.join(FILES)}; there is no folder "
            f"{corpus}"
        )
    if is_built_in(folder.name) or not folder.name:
        name = folder.name or PYDOCS
        raise UserError(
            f"the folder {corpus} cannot be a corpus, because {name} is built in: rename the folder"
        )
    return folder.name, folder.parent


def locate(name: str, data_dir: Path | None) -> Path:
    """Return the absolute folder of the corpus `name`: `data_dir`/`name`. That of a published one
    need not exist yet.

    Raises UserError where it is neither that nor a folder of `data_dir`, or is built in and has no
    folder."""
    if is_built_in(name):
        raise UserError(f"the corpus {name} is built in and has no folder: leave --data-dir out")
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
    """Return the absolute path of the folder `name` in the data folder (default `data`), or of the
    data folder."""
    return (data_dir or DEFAULT_DATA_DIR).resolve() / name


def names_in(folder: Path) -> frozenset[str]:
    """Return what lies in `folder`: nothing where there is no such folder, or where it may not be
    listed."""
    try:
        return frozenset(entry.name for entry in folder.iterdir())
    except OSError:
        return frozenset()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name too long, or a parent that may not be searched
        return False
