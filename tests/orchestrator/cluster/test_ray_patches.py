"""The private parts of Ray that are used are there in the Ray that is installed."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable

import pytest

from orchestrator.cluster import ray_patches


@pytest.mark.parametrize("name", ray_patches.PRIVATE)
def test_the_installed_ray_has_every_private_name_that_is_used(name: str) -> None:
    owner, _, last = name.replace(":", ".").rpartition(".")
    assert hasattr(pkgutil.resolve_name(owner), last)


@pytest.mark.parametrize(
    ("replace", "name"),
    [
        (ray_patches.leave_sigterm_alone, "ray._private.utils:set_sigterm_handler"),
        (ray_patches.print_no_deaths, "ray._private.worker:print_to_stdstream"),
        (ray_patches.count_no_callbacks, "ray.air._internal.usage:tag_callbacks"),
    ],
)
def test_a_replacement_takes_what_ray_gives(
    replace: Callable[[], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = pkgutil.resolve_name(name)
    module, _, function = name.partition(":")
    monkeypatch.setattr(pkgutil.resolve_name(module), function, original)
    replace()
    replacement = pkgutil.resolve_name(name)
    assert replacement is not original
    assert list(inspect.signature(replacement).parameters) == list(
        inspect.signature(original).parameters
    )
