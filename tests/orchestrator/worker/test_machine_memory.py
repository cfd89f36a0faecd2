from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.worker.memory import MachineMemory, machine_memory


def test_memory_equals_system_report() -> None:
    memory = machine_memory(cgroups=Path("/nowhere"))
    assert memory.total_bytes == pytest.approx(
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), rel=0.01
    )
    assert 0 < memory.free_bytes < memory.total_bytes


@pytest.mark.parametrize("group", ["/", "/job", "/job/step"])
def test_container_limit_counts(tmp_path: Path, group: str) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroups"
    (proc / "self").mkdir(parents=True)
    (cgroups / "job/step").mkdir(parents=True)
    (proc / "meminfo").write_text(
        "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    900 kB\n"
    )
    (proc / "vmstat").write_text("nr_free_pages 5\noom_kill 3\n")
    (proc / "self/cgroup").write_text("4:memory:/old\n0::/job/step\n")
    assert machine_memory(proc, cgroups) == MachineMemory(1000 * 1024, 900 * 1024, 3)
    limited = cgroups / group.lstrip("/")
    (cgroups / "job/step/memory.max").write_text("max\n")
    (limited / "memory.max").write_text("102400\n")
    (limited / "memory.current").write_text("102000\n")
    (limited / "memory.events").write_text("low 0\noom 2\noom_kill 1\n")
    memory = machine_memory(proc, cgroups)
    assert memory == MachineMemory(102400, 400, 4)
    assert memory.ran_out_since(memory), "it is full"
    (limited / "memory.stat").write_text("anon 2000\ninactive_file 90000\nactive_file 10000\n")
    full_of_files = machine_memory(proc, cgroups)
    assert full_of_files == MachineMemory(102400, 90400, 4)
    assert not full_of_files.ran_out_since(full_of_files), "the file cache can be freed"
    roomy = MachineMemory(1000, 900, 3)
    assert [roomy.ran_out_since(roomy), MachineMemory(1000, 900, 4).ran_out_since(roomy)] == [
        False,
        True,
    ]


def test_missing_files_mean_unknown_memory(tmp_path: Path) -> None:
    assert machine_memory(tmp_path, tmp_path) == MachineMemory()
