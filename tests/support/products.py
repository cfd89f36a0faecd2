"""What a stretch of work asks of its device: the dtypes of its matrix products, and whether it
reads a number back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "addmm_", "baddbmm_", "_cudnn_rnn", "mkldnn_rnn_layer"}
READS = {"_local_scalar_dense", "is_nonzero", "nonzero", "equal", "masked_select", "_unique2"}


class Asked(TorchDispatchMode):
    """Counts, of all that runs inside, the products by dtype and the reads."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.product_dtypes: set[torch.dtype] = set()
        self.reads = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = func.overloadpacket.__name__
        if name in PRODUCTS:
            # The last factor, as what a product is added to may have another dtype.
            self.product_dtypes.add([arg for arg in args if isinstance(arg, Tensor)][-1].dtype)
        self.reads += name in READS
        run: Callable[..., Any] = func
        return run(*args, **(kwargs or {}))
