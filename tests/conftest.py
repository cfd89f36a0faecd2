from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

# One thread, as trials use. Two test processes whose torch takes every core would wait for each
# other, and multithreaded sums differ in their last bits. Libraries read this once, when loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Ray starts a worker only when a trial needs one. On a busy host, prestarted workers are ready too
# late, and each wastes seconds of a core. At Ray's niceness of 15, workers hardly run next to busy
# tests, while others wait for them.
os.environ.update(RAY_prestart_worker_first_driver="0", RAY_worker_niceness="0")

# No test reads Ray's logs, so its monitor scans for files once instead of ten times a second.
os.environ.update(RAY_LOG_MONITOR_MANY_FILES_THRESHOLD="0", LOG_NAME_UPDATE_INTERVAL_S="3600")

# Import before anything imports Ray, so that Ray listens on loopback only.
with suppress(ModuleNotFoundError):
    import orchestrator.cluster  # noqa: F401

import torch

# Without a GPU, kernels run in Triton's interpreter. Triton reads this once, at its first import.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

from tests.support.browser import browser
from tests.support.postgres import postgres_server, store_url

__all__ = ["browser", "postgres_server", "store_url"]

# No test fails because the host is slow. Hypothesis may be missing on a GPU host.
with suppress(ModuleNotFoundError):
    from hypothesis import settings

    settings.register_profile("without_deadline", deadline=None)
    settings.load_profile("without_deadline")

# The command sets the same threshold, see `sweep.py`.
gc.set_threshold(20_000)

# A suite started in the background may inherit ignored signals, which tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--chaos", action="store_true", help="run all rounds of each random test, instead of a few"
    )


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """Return how many rounds a random test runs.

    The marker `chaos(few, every)` sets two counts: `make test` runs `few` rounds (0 skips the
    test), `make chaos` runs `every`. The variable CHAOS_ROUNDS limits `every`.
    """
    few, every = request.node.get_closest_marker("chaos").args
    every = min(every, int(os.environ.get("CHAOS_ROUNDS", every)))
    count: int = every if request.config.getoption("--chaos") else few
    return count


@pytest.fixture
def one_ray() -> None:
    from tests.support.one_ray import start_ray

    start_ray()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run long tests first, so that pytest's worker processes end at similar times."""
    items.sort(key=_turn)
    left_out = [] if config.getoption("--chaos") else list(filter(_only_in_chaos, items))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _only_in_chaos(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("chaos")
    return marker is not None and marker.args[0] == 0


def _turn(item: pytest.Item) -> tuple[bool, ...]:
    folders, fixtures = set(item.path.parts), set(getattr(item, "fixturenames", ()))
    return (
        "guard" not in folders,
        not {"end_to_end", "kills", "slurm"} & folders,
        "one_ray" not in fixtures,
        "trainables" not in folders,
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Stop the shared Ray after its last test, because even an idle Ray uses CPU time."""
    if all(_turn(item)[:3]):
        _end_ray()


def pytest_sessionfinish() -> None:
    _end_ray()


def _end_ray() -> None:
    if "tests.support.one_ray" in sys.modules:
        sys.modules["tests.support.one_ray"].end_ray()


@pytest.fixture
def in_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
