"""Tests that each stage of the GPU proof accepts correct code and rejects wrong code."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_proof import stage
from gpu_proof.roofline import COSTS, Card, step_seconds
from gpu_proof.stages import captured, memory, resume, speed, sync, toolchain
from tests.support.cpu_graphs import CpuGraphs
from trainables.stack import Stack
from trainables.trial_folder import checkpoint, save_tensors


def results(name: str, folder: Path, device: str = "cpu") -> dict[str, str]:
    return {check.name: check.result for check in stage.checks(name, device, folder)}


def test_fallback_instead_of_kernels_fails(tmp_path: Path) -> None:
    """A CPU has no kernels, so this stage must fail as it would on a GPU without Triton."""
    statuses = results("kernels", tmp_path)
    assert {statuses.pop("alone, monotone_nn")} == {"PASS"}
    assert {*statuses.values()} == {"FAIL"}


def wrong_after(steps: int) -> Callable[[CpuGraphs, Callable[[], None]], Callable[[], None]]:
    captured_by, done = CpuGraphs.captured, [0]

    def captured_twice(graphs: CpuGraphs, work: Callable[[], None]) -> Callable[[], None]:
        replay = captured_by(graphs, work)

        def counted() -> None:
            done[0] += 1
            replay()
            if done[0] == steps:
                replay()

        return counted

    return captured_twice


@pytest.mark.parametrize("wrong", [False, True])
def test_replay_with_other_bits_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: bool
) -> None:
    monkeypatch.setattr("trainables.stack.stack.graphs_on", lambda _device: CpuGraphs())
    if wrong:
        monkeypatch.setattr(CpuGraphs, "captured", wrong_after(3))
        monkeypatch.setattr(captured, "TRIALS", ["awd_lstm"])
    answers = [*results("captured", tmp_path).values()]
    assert answers == (["FAIL"] if wrong else ["PASS", "PASS"])


@pytest.mark.parametrize("waits", [False, True])
def test_step_that_waits_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, waits: bool
) -> None:
    """Only the first training steps may wait for the GPU."""
    mode, step = ["default"], Stack.step
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda name: mode.__setitem__(0, name))
    monkeypatch.setattr(sync, "STEPS", {"awd_lstm": 4, "transformer": 4})
    monkeypatch.setattr(sync, "LAST_STEPS", 2)

    def waiting(stack: Stack) -> None:
        step(stack)
        if waits and mode[0] == "error":
            raise RuntimeError("called a synchronizing CUDA operation")

    monkeypatch.setattr(Stack, "step", waiting)
    for name, result in results("sync", tmp_path).items():
        assert result == ("FAIL" if waits and "stack" in name else "PASS")
    assert mode == ["default"]


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.5, ("PASS", "PASS")), (1.1, ("FAIL", "PASS")), (0.1, ("PASS", "FAIL"))],
)
def test_unplanned_peak_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, share: float, expected: tuple[str, str]
) -> None:
    stacks = [memory.STACKS[0]._replace(models=2)]
    peak_bytes = share * stacks[0].planned_bytes("cpu")
    monkeypatch.setattr(memory, "STACKS", stacks)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda: peak_bytes)
    assert tuple(results("memory", tmp_path).values()) == expected


def test_oversized_stack_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from gpu_proof import timing

    monkeypatch.setattr(timing, "on_gpu", lambda _device: True)
    monkeypatch.setattr(timing, "free_bytes", lambda: 2**20)
    for module in (memory, speed):
        monkeypatch.setattr(module, "STACKS", module.STACKS[:1])
    for name in ("memory", "speed"):
        assert {*results(name, tmp_path).values()} == {"SKIP"}


def test_checkpoint_with_other_bits_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def off(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        save_tensors(path, {**tensors, "epoch_loss": tensors["epoch_loss"] + 1e-9}, state)

    monkeypatch.setattr(resume, "save_tensors", off)
    monkeypatch.setattr(resume, "CASES", {"stack": resume.CASES["stack"]})
    assert results("resume", tmp_path) == {"share of tensors whose bits differ, stack": "FAIL"}


def test_checkpoints_without_a_pause_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Copying a checkpoint's tensors blocks training, although a thread writes the file."""
    copied = checkpoint._serialised

    def slow(*of_trial: Any) -> bytes:
        time.sleep(0.1)
        return copied(*of_trial)

    monkeypatch.setattr(checkpoint, "_serialised", slow)
    monkeypatch.setattr(checkpoint, "MAX_SHARE", 1.0)
    assert results("checkpoints", tmp_path)["time share of saves, tiny trials"] == "FAIL"


@pytest.mark.parametrize(("slower", "result"), [(1e-9, "PASS"), (1e9, "FAIL")])
def test_step_is_compared_with_prediction(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, slower: float, result: str
) -> None:
    """The model is too small for a realistic step time, so the test varies the limit instead."""
    monkeypatch.setattr(speed, "STACKS", speed.STACKS[:1])
    monkeypatch.setattr(speed, "MATRIX", 64)
    monkeypatch.setattr(speed, "MODELS", 2)
    monkeypatch.setattr(speed, "LIMIT", 2 / slower)
    monkeypatch.setattr(speed, "on_gpu", lambda _device: True)
    rates, check = stage.checks("speed", "cpu", tmp_path)
    assert rates.result == "INFO" and check.result == result
    card = Card(rates.figures["copy_tb_s"], rates.figures["product_tflop_s"])
    assert check.figures["prediction"] == 1e3 * step_seconds(COSTS["ptb", "softmax"], card)


@pytest.mark.parametrize("fault", [None, "fails at its first product"])
def test_gpu_fault_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str | None
) -> None:
    properties = SimpleNamespace(name="H200", major=9, minor=0, total_memory=2**37)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _index: properties)
    monkeypatch.setattr(toolchain, "gpu_fault", lambda _index: fault)
    monkeypatch.setattr(toolchain, "triton_problem", lambda _device: fault)
    statuses = results("toolchain", tmp_path, "cuda")
    assert statuses["GPU 0"] == "INFO"
    assert {statuses["product and captured graph on GPU 0"], statuses["Triton launch"]} == {
        "FAIL" if fault else "PASS"
    }
