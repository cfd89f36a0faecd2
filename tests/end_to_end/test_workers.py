from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import results_table, sweep, sweep_process

STUDY = """import os
from pathlib import Path
from search_spaces.study import Study
from trainables.config import Trainable

class Part(Trainable):
    part: str

    def train(self, trial):
        folder = Path({folder!r})
        with (folder / "starts.txt").open("a") as file:
            print(self.part, file=file)
        if not (folder / "repaired").exists():
            if self.part == "dies":
                os._exit(9)
            if self.part == "raises":
                raise ValueError("no more ink")
        return {{"accuracy": 1.0}}

PARTS = ("sound", "dies", "raises")
STUDY = Study(
    name="parts", trials=lambda: [Part(part=p) for p in PARTS], metric="accuracy", mode="max"
)
"""
CAUSES = ("its process died", "ValueError: no more ink")


@pytest.mark.usefixtures("one_ray")
def test_failures_wait_for_retry(tmp_path: Path) -> None:
    """No worker tries a trial again that failed in another one."""
    study, storage, starts = tmp_path / "parts.py", tmp_path / "results", tmp_path / "starts.txt"
    study.write_text(STUDY.format(folder=str(tmp_path)))
    first = sweep_process("work", study, "--storage", storage)
    assert (first.returncode, first.stderr) == (1, "")
    assert sorted(starts.read_text().split()) == ["dies", "dies", "raises", "sound"]
    second = sweep_process("work", study, "--storage", storage)
    assert second.returncode == 1
    assert len(starts.read_text().split()) == 4
    for command in (("report", study), ("status",)):
        answer = sweep(*command, "--storage", storage)
        assert answer.returncode == 0, answer
        assert all(cause in answer.stdout for cause in CAUSES)
    (tmp_path / "repaired").touch()
    again = sweep("retry", study, "--storage", storage)
    assert again.returncode == 0, again
    assert sorted(starts.read_text().split()[4:]) == ["dies", "raises"]
    assert {row["state"] for row in results_table(storage, "parts")} == {"done"}
