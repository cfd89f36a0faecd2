from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "addmm_", "baddbmm_", "_cudnn_rnn", "mkldnn_rnn_layer"}


class DtypeRecorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.product_dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = func.overloadpacket.__name__
        if name in PRODUCTS:
            # Use the last factor: the addend of a product may have another dtype.
            self.product_dtypes.add([arg for arg in args if isinstance(arg, Tensor)][-1].dtype)
        run: Callable[..., Any] = func
        return run(*args, **(kwargs or {}))
