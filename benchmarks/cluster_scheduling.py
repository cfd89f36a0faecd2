"""Scheduling on three machines: trials that last 1 s, and 10,000 that last nothing, on Ray in
network namespaces.

`python -m benchmarks.cluster_scheduling [TRIALS] [CORES]` (as root) prints the share of the ideal
time: TRIALS trials of 1 s on three machines of CORES cores. `... memory [TRIALS]` prints the
driver's memory while trials that do nothing are planned and run."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.scheduling import do_nothing, peak_mib, planned
from orchestrator.cluster import RunOptions
from orchestrator.schedule import StudyWork, run_trials
from orchestrator.storage import FolderStorage
from orchestrator.store import RunRecord, StudyKey, open_store
from orchestrator.watch import Listener
from orchestrator.worker import TrialFunctions
from tests.support.namespaces import cluster, why_not
from trainables.runtime import Runtime
from trainables.trial_folder import EpochMetrics, TrialOutcome

LEAST_SHARE = 0.85


def wait_a_second(
    config: Any,
    *,
    directory: Path,
    runtime: Runtime,
    measurements: Sequence[str],
    on_epoch: Callable[[EpochMetrics], None],
    stop_above: Mapping[int, float] | None,
) -> TrialOutcome:
    """A trial that needs a core for 1 s, as far as scheduling is concerned."""
    time.sleep(1.0)
    return do_nothing(
        config,
        directory=directory,
        runtime=runtime,
        measurements=measurements,
        on_epoch=on_epoch,
        stop_above=stop_above,
    )


class Memory(Listener):
    """Prints the driver's memory after every tenth of the trials."""

    def __init__(self, trials: int) -> None:
        self._ended, self._every = 0, max(1, trials // 10)

    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        del trial_id, outcome
        self._ended += 1
        if self._ended % self._every == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            print(f"{self._ended} trials ended, {pages * 4096 / 2**20:.0f} MiB", flush=True)


def drive(storage: Path, store_url: str, address: str, trials: int, *, idle: bool) -> None:
    """The driver, on the head: trials that wait for a second, or do nothing."""
    plan = planned(trials)
    print(f"{trials} trials planned, peak {peak_mib():.0f} MiB", flush=True)
    with open_store(store_url) as store:
        store.register(StudyKey(study="nothing", scale="smoke", corpus="none"), plan)
        record = RunRecord(
            code_version="-", packages={}, host="-", device="cpu", corpus_sha256="0" * 64
        )
        start_s = time.perf_counter()
        run_trials(
            plan,
            StudyWork(
                store=store,
                run_id=store.begin_run(record),
                options=RunOptions(storage=FolderStorage(storage), address=address),
                seconds_per_trial=0.001 if idle else 1.0,
                listener=Memory(trials) if idle else Listener(),
                functions=TrialFunctions(run_trial=do_nothing if idle else wait_a_second),
            ),
        )
        print(
            f"{time.perf_counter() - start_s:.2f} s from connecting to Ray to the last result",
            flush=True,
        )
        states = set(store.states([trial.trial_id for trial in plan]).values())
    assert states == {"done"}, states
    print(f"peak {peak_mib():.0f} MiB")


def main(trials: int, cores: int, *, idle: bool) -> None:
    """Start the machines, run the driver on the head, print what it says and the share of the
    ideal."""
    reason = why_not()
    if reason is not None:
        sys.exit(reason)
    with (
        tempfile.TemporaryDirectory(prefix="bench") as folder,
        cluster(Path(folder), cpus=cores) as three,
    ):
        words = [
            str(three.storage),
            three.store_url,
            three.address,
            str(trials),
            "idle" if idle else "wait",
        ]
        answer = three.head.python(
            "-m", "benchmarks.cluster_scheduling", "drive", *words, timeout_s=3600
        )
    print(answer.stdout, end="")
    if answer.returncode != 0:
        sys.exit(answer.stderr)
    if not idle:
        took_s = float(answer.stdout.split(" s from connecting")[0].splitlines()[-1])
        ideal_s = trials / (3 * cores)
        share = ideal_s / took_s
        print(
            f"ideal {ideal_s:.1f} s: {share:.1%} of it "
            f"({'kept' if share >= LEAST_SHARE else 'NOT KEPT'})"
        )


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == ["drive"]:
        drive(Path(given[1]), given[2], given[3], int(given[4]), idle=given[5] == "idle")
    elif given[:1] == ["memory"]:
        main(int(given[1]) if len(given) > 1 else 10_000, 2, idle=True)
    else:
        main(int(given[0]) if given else 1_200, int(given[1]) if len(given) > 1 else 4, idle=False)
