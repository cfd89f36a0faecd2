"""Users' Python files, and the packages next to them, identified by their content."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, PydanticUserError, ValidationError
from typing_extensions import override

from trainables.config.text_file import TextFile
from trainables.errors import UserError, first_line, first_problem

MAX_FILES_BYTES = 2**26
"""Limit on the files that travel with a trial's code: every worker gets a copy of them."""


@dataclass(frozen=True, kw_only=True)
class UserCode(TextFile):
    """A user's Python file, and files that travel with it."""

    files: tuple[tuple[str, bytes], ...] = ()
    """Path relative to the Python file's folder, and content; sorted by path."""

    @property
    @override
    def sha256(self) -> str:
        """SHA-256 in hexadecimal: that of the Python file, if it is alone."""
        if not self.files:
            return super().sha256
        digest = hashlib.sha256(self.content)
        for name, content in self.files:
            digest.update(f"{len(content)} {name}\0".encode() + hashlib.sha256(content).digest())
        return digest.hexdigest()


PROJECT = [Path(__file__).parents[2] / name for name in ("search_spaces", "trainables")]
_modules: dict[str, ModuleType] = {}
_code: dict[str, UserCode] = {}


def register(module: ModuleType, packages: Iterable[str] = ()) -> UserCode:
    """Return the code of a module that this process imported, for `user_class` and `code_of`.

    `packages` are folders and files next to the module's file. Raises UserError if a file is
    missing, or if the module imports another neighbour, which workers would not have.
    """
    try:
        path = Path(inspect.getfile(module))
    except (TypeError, OSError) as error:
        raise UserError(
            f"{module.__name__}: classes of trials must be in a Python file, which is sent to "
            "workers. Move them into one."
        ) from error
    text = path.read_text(encoding="utf-8")
    packages = tuple(str(package).rstrip("/") for package in packages)
    refuse_neighbours(path, text, packages)
    files = read_files(path.parent, packages, "code")
    code = UserCode(name=path.name, text=text, files=files)
    add(code, module)
    return code


def add(code: UserCode, module: ModuleType) -> None:
    """Record a module, so that its classes are found by the code's SHA-256."""
    _modules[code.sha256], _code[code.sha256] = module, code


def read_files(folder: Path, names: Iterable[str], option: str) -> tuple[tuple[str, bytes], ...]:
    """Return the files at these relative paths; a folder gives all files below it.

    Hidden files and Python's caches are omitted. Raises UserError, which names `option`.
    """
    contents: dict[str, bytes] = {}
    for name in names:
        root = folder / name
        if not root.resolve().is_relative_to(folder.resolve()):
            raise UserError(f"{option}: {name} is outside of {folder}. Move it there.")
        paths = [root] if root.is_file() else sorted(root.rglob("*"))
        for path in paths:
            relative = path.relative_to(folder)
            is_hidden = any(part.startswith((".", "__pycache__")) for part in relative.parts)
            if path.is_file() and not is_hidden:
                contents[relative.as_posix()] = path.read_bytes()
        if not paths:
            raise UserError(f"{option}: {root} is missing or empty. Check its name.")
    if (size := sum(map(len, contents.values()))) > MAX_FILES_BYTES:
        raise UserError(
            f"{option}: the files have {size / 2**20:.0f} MiB, more than {MAX_FILES_BYTES >> 20}. "
            "Keep data in --data-dir, which is not copied."
        )
    return tuple(sorted(contents.items()))


def refuse_neighbours(path: Path, text: str, packages: Iterable[str] = ()) -> None:
    """Raise UserError if the file imports a module next to it that workers do not have."""
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "."] if not node.level else ["." + (node.module or "")]
        for name in (name.partition(".")[0] for name in names):
            neighbour = path.parent / name
            if neighbour in PROJECT or {name, f"{name}.py"} & set(packages):
                continue  # workers have it
            if (
                not name
                or neighbour.with_suffix(".py").is_file()
                or (neighbour / "__init__.py").is_file()
            ):
                raise UserError(
                    f"{path.name} imports {name or 'relatively'} from its own folder, which "
                    "workers do not have: put both into one file, install a package, or add "
                    f'code="{name or path.parent.name}" to the `Trainable`'
                )


def import_file(path: Path) -> ModuleType:
    """Import a Python file by its path.

    The file can import modules of its own folder, like a script. Raises UserError if it fails.
    """
    spec = importlib.util.spec_from_file_location(f"user_study_{path.stem.replace('.', '_')}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UserError(f"{path}: no such Python file. Check its path.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.append(str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except PydanticUserError as error:
        problem = str(error).partition(". ")[0]
        raise UserError(
            f"{path}: {problem}. Give every setting a type, such as int, float or str."
        ) from error
    except (Exception, SystemExit) as error:
        # Any exception that a user's file raises is a fault of that file.
        problem = first_line(str(error))
        if isinstance(error, ValidationError):
            problem = first_problem(error)
        fix = "Install the package, or fix" if isinstance(error, ModuleNotFoundError) else "Fix"
        raise UserError(
            f"{path}: the import raised {type(error).__name__}: {problem}. {fix} the file."
        ) from error
    return module


def register_file(path: Path) -> None:
    """Import a Python file, and register it unless its classes have done so."""
    if (module := import_file(path)) not in _modules.values():
        register(module)


def load_code(code: UserCode) -> None:
    """Import a user's file, once per process. Raises UserError if the file fails.

    Pass only a file that the user's own command named, never text from a store or a config.
    """
    if code.sha256 not in _modules:
        try:
            add(code, import_file(_unpacked(code) / code.name))
        except UserError:
            _modules.pop(code.sha256, None)  # its first classes have registered it
            raise


def cache_home() -> Path:
    """Return this user's folder for copies of files; it may not exist."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "softmax-bottleneck-sweeps"


def _unpacked(code: UserCode) -> Path:
    """Return a folder with the code's files, which all processes of this host share."""
    folder = cache_home() / "code" / f"{code.sha256}-{code.name}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = Path(tempfile.mkdtemp(dir=folder.parent))
        write_files(partial, ((code.name, code.content), *code.files))
        try:
            partial.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(partial)
    return folder


def write_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write files at their relative paths below a folder."""
    for name, content in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if content.startswith(b"#!"):
            path.chmod(0o755)


def user_class(sha256: str, name: str, base: type) -> Any:
    """Return the subclass of `base` with this name; None if it or the code is missing."""
    value = getattr(_modules.get(sha256), name, None)
    return value if isinstance(value, type) and issubclass(value, base) else None


def require_code(sha256: str, owner: str) -> UserCode:
    """Return the code. Raises UserError, which begins with `owner`, if it is not loaded."""
    if sha256 not in _code:
        files = ", ".join(code.name for code in _code.values()) or "none"
        raise UserError(
            f"{owner}: no loaded file has SHA-256 {sha256[:12]}... (loaded: {files}). Run the "
            "trial through its study, or pass the unchanged file to `python -m trainables` with "
            "--code."
        )
    return _code[sha256]


def code_of(configs: Iterable[BaseModel]) -> tuple[UserCode, ...]:
    """Return the code of the users' classes in these configs, if this process has it."""
    digests = dict.fromkeys(
        getattr(part, "sha256", None)
        for config in configs
        for part in (config, getattr(config, "output_layer", None))
    )
    return tuple(_code[digest] for digest in digests if digest in _code)
