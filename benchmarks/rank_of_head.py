"""`rank` of a head as large as Pythia's smallest: the whole command's seconds and peak memory, and
numpy's values.

python -m benchmarks.rank_of_head [--words 50304] [--width 512] [--dtype float16]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from trainables.measurements import rank_file


def write_head(path: Path, words: int, width: int, dtype: str) -> None:
    """A random head whose singular values fall by a factor of 1,000, an embedding and a final
    norm."""
    random = np.random.default_rng(18)
    head_VD = random.standard_normal((words, width), dtype=np.float32) * np.geomspace(
        1, 1e-3, width, dtype=np.float32
    )
    tensors = {
        "embed_out.weight": head_VD.astype(dtype),
        "gpt_neox.embed_in.weight": head_VD.astype(dtype),
        "gpt_neox.final_layer_norm.weight": np.ones(width, dtype),
    }
    save_file(tensors, path)


def main() -> None:
    """Measure the command in a process of its own, then compare the singular values with numpy's in
    float64."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=int, default=50_304)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--dtype", choices=("float16", "float32"), default="float16")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        write_head(path, arguments.words, arguments.width, arguments.dtype)
        start = time.perf_counter()
        command = [sys.executable, "sweep.py", "rank", str(path), "--format", "json"]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = json.loads(answer.stdout)
        print(
            f"{arguments.words:,} x {arguments.width:,} {arguments.dtype}, "
            f"{path.stat().st_size / 2**20:.0f} MiB: "
            f"{seconds:.1f} s, of all cores {usage.ru_utime + usage.ru_stime:.1f} s; "
            f"peak {usage.ru_maxrss / 1024:.0f} MiB"
        )
        print({name: value for name, value in report.items() if "rank" in name})
        spectrum = rank_file(path).spectrum
        start = time.perf_counter()
        with safe_open(path, framework="numpy") as file:
            head_VD = file.get_tensor("embed_out.weight").astype(np.float64)
        sigma_D = np.linalg.svd(head_VD, compute_uv=False)
        difference = np.abs(spectrum.singular_values / sigma_D - 1).max()
        seconds = time.perf_counter() - start
        print(
            f"largest relative difference from numpy's SVD in float64, which took {seconds:.1f} s: "
            f"{difference:.2g}"
        )


if __name__ == "__main__":
    main()
