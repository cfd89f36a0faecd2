from __future__ import annotations

import getpass
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpu_proof import command

ROOT = Path(__file__).parents[2]
STAGES = {*command.STAGES}
WITHOUT_OTHERS = """
import importlib.abc, sys
class Refused(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"ray", "sqlalchemy", "typer", "safetensors", "scipy", "rich"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refused())
"""
WRONG_LOSS = """
from trainables.output_layers import PointwiseSoftmax
loss = PointwiseSoftmax.loss
PointwiseSoftmax.loss = lambda *of_loss: loss(*of_loss) * 1.001
from gpu_proof.stages import exact
error = lambda device: exact.layer_error(device, "gss")
exact._errors = lambda: iter([("loss of gss", 1e-4, error)])
"""


def prove(
    folder: Path, *words: str, python_path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({} if python_path is None else {"PYTHONPATH": str(python_path)})
    program = [sys.executable, str(ROOT / "sweep.py"), "prove-gpu", *words]
    return subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )


def written(folder: Path) -> dict[str, Any]:
    [file] = folder.glob("gpu-proof-*.json")
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def test_tiny_proof_passes_on_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_programs(monkeypatch, {"exact": "from gpu_proof.stages import exact; exact.STEPS = 3"})
    file = tmp_path / "gpu-proof-x.json"
    assert command.main(["--device", "cpu", "--json", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    content = json.loads(file.read_text())
    checks = [check for stage in content["stages"].values() for check in stage["checks"]]
    passed = sum(check["result"] == "PASS" for check in checks)
    assert lines[-1] == f"PASS  {passed} passed, 0 failed, 0 not tried" and passed > 60
    assert {*content["stages"]} == {name for name, stage in command.STAGES.items() if stage.on_cpu}
    assert sum(line.endswith("only on a GPU") for line in lines) == 3
    assert content["counts"]["PASS"] == passed and content["device"] == "cpu"
    numbers = [check["figures"] for check in checks if check["result"] == "PASS"]
    assert all(figures["value"] <= figures["limit"] for figures in numbers if figures)
    assert len(list(tmp_path.iterdir())) == 1


def run_programs(monkeypatch: pytest.MonkeyPatch, programs: Mapping[str, str]) -> None:
    def words(name: str, *arguments: str) -> list[str]:
        program = programs.get(name, "") + "\nfrom gpu_proof.stage import main\nmain()"
        return [sys.executable, "-c", program, name if name in STAGES else "exact", *arguments]

    monkeypatch.setattr(command, "_command", words)


def test_optional_packages_are_not_needed(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "sitecustomize.py").write_text(WITHOUT_OTHERS)
    stages = ("captured", "resume")
    answer = prove(tmp_path, "--device", "cpu", "--stages", *stages, python_path=packages)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert answer.stdout.count("not tried: safetensors is not installed") == 1
    assert "INCOMPLETE  2 passed, 0 failed, 1 not tried" in answer.stdout and answer.stderr == ""
    assert "usage: prove-gpu" in prove(tmp_path, "--help", python_path=packages).stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--device", "tpu"], "tpu"),
        (["--stages", "nothing"], "nothing"),
        (["--device", "cpu", "--json", "no/such/folder"], "--json"),
        (["--much"], "--much"),
        ([], "no GPU"),
    ],
)
def test_bad_input_error_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    try:
        status: object = command.main(words)
    except SystemExit as ended:
        status = ended.code
    assert status == 2 and not list(tmp_path.iterdir())
    out, err = capfd.readouterr()
    assert out == "" and text in err and err.startswith("error: ") and err.count("\n") == 1


def test_each_stage_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = f"CUDA error in {Path.home() / 'secret'} {ROOT / 'x'} {getpass.getuser()}"
    programs = {
        "hang": "import time; time.sleep(100)",
        "wrong loss": WRONG_LOSS,
        "crash": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "error": f"raise RuntimeError({error!r})",
        "silence": "raise SystemExit",
    }
    texts = (
        "longer than 1 s",
        "loss of gss: 0.001, at most 0.0001",
        "status -11",
        "status 1: RuntimeError: CUDA error in ~/secret ./x USER",
        "status 0",
    )
    stages = {name: command.Stage(60.0) for name in programs} | {"hang": command.Stage(1.0)}
    monkeypatch.setattr(command, "STAGES", stages | {"toolchain": command.Stage(60.0)})
    run_programs(monkeypatch, programs)
    file = tmp_path / "gpu-proof-x.json"
    assert command.main(["--device", "cpu", "--json", str(file)]) == 1
    *lines, verdict = capsys.readouterr().out.splitlines()
    failures = [line for line in lines if line.startswith("FAIL")]
    for failure, text in zip(failures, texts, strict=True):
        assert text in failure
    assert verdict.startswith("FAIL") and "5 failed" in verdict
    results = json.loads(file.read_text())["stages"]
    assert results["toolchain"]["checks"][0]["name"] == "versions"
    assert [name for name, stage in results.items() if "Traceback" in stage["log"]] == ["error"]
    assert str(Path.home()) not in file.read_text() and str(ROOT) not in file.read_text()


def test_killed_proof_ends_its_stage(tmp_path: Path) -> None:
    program = """
import json, sys
from gpu_proof import command
check = json.dumps({"name": "versions", "result": "INFO", "text": ""})
programs = {
    "toolchain": f"print({check!r})",
    "exact": "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(100)",
}
command._command = lambda name, *rest: [sys.executable, "-c", programs[name]]
sys.exit(command.main(["--device", "cpu", "--stages", "toolchain", "exact"]))
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL
    ) as process:
        pid = tmp_path / "pid"
        while not (pid.exists() and pid.read_text()):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert [*written(tmp_path)["stages"]] == ["toolchain"]
    assert {path.name[:9] for path in tmp_path.iterdir()} == {"pid", "gpu-proof"}
