"""A Slurm cluster of two nodes on this machine, whose daemons and jobs end with the test process.

The nodes have their own host names, and share a process and a mount namespace. So a test can hide a
folder from them, and the kernel ends all their processes with the first one.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command import wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare", "nsenter", "setpriv")
NODES = ("one", "two")
START_S, KILL_WAIT_S = 60.0, 5
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core,CR_LLN
KillWait={kill_wait_s}
MinJobAge=36000
NodeName=one NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2
NodeName=two NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2
PartitionName=cpu Nodes=one,two Default=YES
"""
START = """
cd "$0" && mkdir state
munged --foreground --force --key-file=munge.key --socket="$0/munge.sock" --pid-file=munge.pid \
  --log-file=munge.log --seed-file=munge.seed >munged.out 2>&1 &
while [ ! -S munge.sock ]; do sleep 0.05; done
slurmctld -D >controller.log 2>&1 &
for node in one two; do
  unshare --uts sh -c "hostname $node; exec slurmd -D -N $node" >$node.log 2>&1 &
done
wait
"""


@dataclass(frozen=True)
class SlurmCluster:
    """A running cluster; SLURM_CONF of this process names it."""

    pid: int
    """A process in the nodes' namespaces."""

    def jobs(self) -> dict[str, str]:
        """Return the state of each job that waits or runs, such as {"3_1": "RUNNING"}."""
        lines = _run("squeue", "--noheader", "--array", "--format=%i %T").splitlines()
        return dict(line.split() for line in lines)

    def cancel(self, *jobs: str) -> None:
        """Cancel jobs, such as "3" or "3_1"."""
        _run("scancel", *jobs)

    def wait_for_jobs(self, timeout_s: float) -> None:
        wait_for(lambda: not self.jobs(), timeout_s=timeout_s, event="the end of all jobs")

    def exit_statuses(self, job: str) -> list[int]:
        """Return the exit status of each job of an array that has ended."""
        text = _run("scontrol", "--oneliner", "show", "job", job)
        return [int(status) for status in re.findall(r"ExitCode=(\d+)", text)]

    def restarts(self, job: str) -> int:
        """Return how often the jobs of an array were queued again."""
        text = _run("scontrol", "--oneliner", "show", "job", job)
        return sum(map(int, re.findall(r"Restarts=(\d+)", text)))

    @contextmanager
    def hidden(self, folder: Path) -> Iterator[None]:
        """Put an empty folder over `folder`, for the nodes alone."""
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--pid"]
        subprocess.run([*enter, "mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
        try:
            yield
        finally:
            subprocess.run([*enter, "umount", "--lazy", str(folder)], check=True)


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[SlurmCluster]:
    """Start a cluster whose files are in `folder`. Skip the test if that is impossible."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(f"needs {', '.join(missing)} (slurm-wlm, munge and util-linux)")
    if os.geteuid() != 0:
        pytest.skip("needs root, to start Slurm's daemons")
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=socket.gethostname(),
            folder=folder,
            ports=free_ports(3),
            kill_wait_s=KILL_WAIT_S,
        )
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(configuration))
        namespaces = ["--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]
        holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *namespaces, "sh", "-c", START, folder],
            stdin=subprocess.DEVNULL,
        )
        try:
            children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
            pid = wait_for(children.read_text, timeout_s=START_S, event="the first process")
            try:
                wait_for(_is_ready, timeout_s=START_S, event="Slurm")
            except AssertionError:
                pytest.skip("Slurm's daemons do not start on this machine")
            yield SlurmCluster(int(pid))
        finally:
            holder.kill()
            holder.wait()


def _is_ready() -> bool:
    answer = subprocess.run(
        ["sinfo", "--noheader", "--Node", "--format=%N %T"],
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.splitlines() == [f"{node} idle" for node in NODES]


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nothing listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
