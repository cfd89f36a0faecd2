"""How many trials of a pack are trained as one on this machine's GPU."""

from __future__ import annotations

from collections.abc import Sequence

from trainables.config import LanguageTrialConfig
from trainables.corpora import load
from trainables.parameters import stack_size
from trainables.runtime import Runtime


def chosen_size(
    configs: Sequence[LanguageTrialConfig], runtime: Runtime, most: int, free_bytes: float
) -> tuple[int, str]:
    """Of at most so many trials at a time, what trains fastest within the free memory of the GPU;
    and why, as a clause.

    All have one `stack_key`. The first pack of a kind in a process is timed for that, some seconds
    long."""
    from trainables.stack import best_size, measured_rates

    vocabulary = load(configs[0].corpus, data_dir=runtime.data_dir).vocabulary
    fitting = min(most, len(configs), stack_size(configs, len(vocabulary), free_bytes))
    rates = measured_rates(configs[:fitting], runtime) if fitting > 1 else {}
    if not rates:
        return (
            fitting,
            f"up to {fitting} trials are trained as one, by the free memory of "
            f"{free_bytes / 2**30:.1f} GiB",
        )
    steps = ", ".join(f"{rate:.3g} with {size}" for size, rate in rates.items())
    size = best_size(rates)
    return size, f"up to {size} trials are trained as one, by steps of trials a second: {steps}"
