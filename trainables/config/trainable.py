"""Trials of users' own code: a Python class, or any program."""

from __future__ import annotations

import inspect
import string
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from trainables.config.experiment import ExperimentConfig
from trainables.config.frozen import Seed, Sha256
from trainables.config.keys import COLUMNS
from trainables.config.user_code import UserCode, add, read_files, register
from trainables.errors import UserError

FIRST_SEED = 1
Setting = bool | int | float | str | None


class Trainable(ExperimentConfig):
    """Base class of a user's trials. The typed fields of a subclass are the trial's settings.

    A trial is identified by the class's name, the SHA-256 of its file, all fields and the seed.
    `class Mlp(Trainable, code="package")` takes along a folder next to the file.
    """

    kind: Literal["trainable"] = "trainable"
    seed: Seed = FIRST_SEED
    trainable: str = ""
    """Name of the class."""
    sha256: Sha256 = ""
    """SHA-256 of the file of the class, and of the folders in `code`."""
    _code: ClassVar[UserCode | None]

    @override
    def __init_subclass__(cls, *, code: str | Iterable[str] = (), **options: Any) -> None:
        super().__init_subclass__(**options)

    @classmethod
    @override
    def __pydantic_init_subclass__(cls, *, code: str | Iterable[str] = (), **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        taken = (COLUMNS | set(dir(Trainable)) | Trainable.model_fields.keys()) - {"seed"}
        for name in inspect.get_annotations(cls).keys() & cls.model_fields.keys() & taken:
            raise UserError(f"{cls.__name__}.{name}: the name is taken. Rename the field.")
        module = sys.modules[cls.__module__]
        cls._code = None
        if not module.__package__:  # its file alone would not work
            cls._code = register(module, (code,) if isinstance(code, str) else code)

    @model_validator(mode="before")
    @classmethod
    def _add_identity(cls, values: Any) -> Any:
        if cls in (Trainable, UnloadedTrainable) or not isinstance(values, Mapping):
            return values
        if cls._code is None or cls.__qualname__ != cls.__name__:
            raise UserError(
                f"{cls.__qualname__}: must be at the top level of a file that is in no package. "
                'Move it there, or make a subclass there, with code="PACKAGE".'
            )
        identity = {"trainable": cls.__name__, "sha256": cls._code.sha256}
        for name, value in identity.items():
            if values.get(name, value) != value:
                raise ValueError(f"{name} cannot be set")
        return {**values, **identity}

    @field_validator("*")
    @classmethod
    def _refuse_sets(cls, value: Any) -> Any:
        if isinstance(value, set | frozenset):
            raise ValueError("a set has no order, so that trials would change. Use a tuple")
        return value

    @property
    @override
    def family(self) -> str:
        return self.trainable

    def train(self, trial: Any) -> Mapping[str, Any] | None:  # noqa: ARG002
        """Train, and return the final metrics by name, or None for those of the last epoch.

        `trial` is a `trainables.trial.Trial`.
        """
        raise UserError(f"{self.trainable}: has no method train(self, trial). Add it.")


class UnloadedTrainable(Trainable, extra="allow"):
    """A user's trial in a process that has not loaded its file."""


class Command(ExperimentConfig, extra="allow"):
    """A trial of any program, which prints its metrics as JSON objects, one per line.

    An object with "epoch" is a point of the curve; other objects are final metrics. In arguments,
    `{name}` is replaced by a setting and `{seed}` by the seed. `files` are relative to the Python
    file that makes the command; workers get copies. The trial's identity has the arguments, the
    settings, the seed, and the files' names and contents.

        Command(["python", "train.py", "--lr={lr}"], files=["train.py"], lr=0.1)
    """

    kind: Literal["command"] = "command"
    seed: Seed = FIRST_SEED
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    files: tuple[str, ...] = ()
    sha256: Sha256 | None = None
    """SHA-256 of the files; None without files."""
    __pydantic_extra__: dict[str, Setting] = Field(init=False)

    def __init__(
        self,
        command: Iterable[str],
        *,
        files: Iterable[str] = (),
        **settings: Any,
    ) -> None:
        files = tuple(files)
        if files and "sha256" not in settings:
            caller = sys._getframe(1).f_globals.get("__file__", "")
            settings["sha256"] = register_files(Path(caller).parent, files, "files")
        super().__init__(**{"command": tuple(command), "files": files, **settings})

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        names = {*(self.model_extra or {}), "seed"}
        for name in names & COLUMNS:
            raise UserError(f"command: the name {name!r} is taken. Rename the setting.")
        for text in self.command:
            for name in placeholders(text):
                if name not in names:
                    raise UserError(
                        f"command: {{{name}}} in {text!r} has no value. Add {name}=VALUE, or write "
                        "{{ and }} for braces."
                    )
        return self

    @property
    @override
    def family(self) -> str:
        return " ".join(self.command[:2])

    @property
    def arguments(self) -> list[str]:
        """Return the program's arguments, with all settings filled in."""
        values = {**(self.model_extra or {}), "seed": self.seed}
        return [text.format_map(values) for text in self.command]


def register_files(folder: Path, names: Iterable[str], option: str) -> str:
    """Read a command's files, for workers; return their SHA-256. Raises UserError."""
    code = UserCode(name="command.py", text="", files=read_files(folder, names, option))
    add(code, ModuleType("command"))
    return code.sha256


def placeholders(text: str) -> list[str]:
    """Return the names in braces: ["lr"] for "--lr={lr}". Raises UserError for other braces."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError:
        names = [""]
    if not all(map(str.isidentifier, names)):
        raise UserError(
            f"command: in {text!r}, braces hold no name. Write {{{{ and }}}} for braces."
        )
    return names
