from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}
HEAD, EMBEDDING, NORM = "lm_head.weight", "model.embed_tokens.weight", "model.norm.weight"


def head(
    words: int = 60, width: int = 8, *, seed: int = 0, decay: float = 1.0
) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    return random.standard_normal((words, width)) * np.geomspace(1, decay, width)


def write_checkpoint(
    path: Path,
    tensors: Mapping[str, NDArray[Any]],
    *,
    dtype: str = "float32",
    config: Mapping[str, Any] | None = None,
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(
        {
            name: torch.from_numpy(np.array(value)).to(DTYPES[dtype])
            for name, value in tensors.items()
        },
        path,
    )
    if config is not None:
        (path.parent / "config.json").write_text(json.dumps(config))
    return path


def write_shards(folder: Path, shards: Mapping[str, Mapping[str, NDArray[Any]]]) -> Path:
    for name, tensors in shards.items():
        write_checkpoint(folder / name, tensors)
    index = folder / "model.safetensors.index.json"
    index.write_text(
        json.dumps(
            {"weight_map": {tensor: name for name, held in shards.items() for tensor in held}}
        )
    )
    return index
