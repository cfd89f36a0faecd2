"""A study of a user's own code as a Slurm job array that tests disturb, and the judgement."""

from __future__ import annotations

import random
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.kills.own_sweep import EPOCHS, OwnSweep
from tests.kills.typed_sweep import Round, Undisturbed, kill
from tests.support.command import wait_for
from tests.support.scratch import mentioning
from tests.support.slurm import SlurmCluster

SPAN_S, START_S, ROUND_S = 2.0, 300.0, 1500.0
"""Longest time between an epoch and the next event; limits for a command and for a whole round."""
WORKER = re.compile(r"sweep\.py work |orchestrator\.worker\.process")
VICTIMS = ("process", "worker")
"""Kill one process of a worker (guard, driver or trial), or all of them."""


class ArraySweep(OwnSweep):
    def __init__(self, folder: Path, cluster: SlurmCluster, **options: Any) -> None:
        super().__init__(folder, **options)
        self.cluster, self.arrays = cluster, list[str]()

    def submit(self, *options: str, **variables: Any) -> str:
        """Submit workers; return the number of the array's job."""
        typed = self.type(*options, command="slurm", **variables)
        assert typed.status(START_S) == 0, typed.text
        self.arrays += re.findall(r"Submitted job (\d+)", typed.text)
        return self.arrays[-1]

    def workers(self) -> dict[str, list[int]]:
        """Return the processes of each worker, by the id of its job."""
        workers = dict[str, list[int]]()
        for pid, line in mentioning(self.temporary).items():
            if WORKER.search(line):
                with suppress(OSError):
                    environment = Path(f"/proc/{pid}/environ").read_text()
                    for job in re.findall(r"SLURM_JOB_ID=(\d+)", environment):
                        workers.setdefault(job, []).append(pid)
        return workers

    def kill_worker(self, chance: random.Random) -> bool:
        """Kill a random worker or one of its processes; return whether there was one."""
        workers = self.workers()
        if not workers:
            return False
        pids = workers[chance.choice(sorted(workers))]
        kill(pids if chance.choice(VICTIMS) == "worker" else [chance.choice(pids)])
        return True

    def cancel_job(self, chance: random.Random) -> bool:
        """Cancel a random running job; return whether there was one."""
        jobs = [job for job, state in self.cluster.jobs().items() if state == "RUNNING"]
        if jobs:
            self.cluster.cancel(chance.choice(jobs))
        return bool(jobs)

    def results(self) -> int:
        return len(list(self.storage.glob("trials/*/*/result.json")))

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in self.storage.glob("slurm/*.log"))

    def wait_for_an_epoch(self) -> None:
        diaries = self.diaries()
        wait_for(
            lambda: self.diaries() != diaries or not self.cluster.jobs(),
            timeout_s=START_S,
            event="an epoch",
        )

    def judge_array(self, part: Round, undisturbed: Undisturbed, interruptions: int) -> None:
        """Add what is wrong after the last job. An interruption may repeat one attempt."""
        part.troubles += self.troubles(undisturbed.table, undisturbed.limit_s)
        part.troubles += [f"fence left: {path}" for path in self.storage.glob("trials/*/*/worker")]
        attempts, logs = self.attempts(), self.logs()
        repeated = sum(map(len, attempts)) - len(attempts)
        if repeated > interruptions:
            part.troubles.append(f"{repeated} attempts after {interruptions} interruptions")
        if "Traceback" in logs:
            part.troubles.append(f"traceback: {logs[-2000:]}")
        trained = sum(len(epochs) for trial in attempts for _, _, *epochs in trial)
        part.kind += (
            f"; {len(self.arrays)} arrays; {repeated} attempts resumed, "
            f"{sum(first > 0 for trial in attempts for first, *_ in trial)} from a checkpoint; "
            f"{trained - EPOCHS * len(attempts)} of {trained} epochs trained again"
        )

    def disturb(
        self,
        events: list[str],
        chance: random.Random,
        array: tuple[str, ...],
        *first: str,
        **variables: Any,
    ) -> tuple[Round, int]:
        """Submit arrays until all trials have results, with "kill" and "cancel" in between.

        Only the first array gets the options `first`. Return also the number of interruptions.
        """
        counts, events, begin_s = dict.fromkeys(events, 0), list(events), time.monotonic()
        self.submit(*array, *first, **variables)
        while (in_time := time.monotonic() - begin_s < ROUND_S) and self.results() < self.TRIALS:
            if not self.cluster.jobs():
                self.submit(*array, **variables)
            if events:
                self.wait_for_an_epoch()
                time.sleep(chance.uniform(0, SPAN_S))
                act = {"kill": self.kill_worker, "cancel": self.cancel_job}[events[0]]
                if act(chance):
                    counts[events.pop(0)] += 1
            time.sleep(0.2)
        part = Round("", troubles=[] if in_time else [f"hung: {self.logs()[-500:]}"])
        if part.troubles:
            self.cluster.cancel(*self.arrays)
        self.cluster.wait_for_jobs(START_S)
        part.seconds = time.monotonic() - begin_s
        counts["time limit"] = sum(map(self.cluster.restarts, self.arrays))
        part.kind = ", ".join(f"{count} {name}" for name, count in counts.items())
        return part, sum(counts.values())
