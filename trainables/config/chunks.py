"""How many rows of logits are held at a time: so few that they stay in the cache, so many that products are fast.

Imports no torch, so that a plan can say what a trial will need.
"""

from __future__ import annotations

CPU_CHUNK_BYTES = 5 * 2**19
"""2.5 MiB: a chunk and its slopes stay in a core's share of the cache (benchmarks/loss.py compares sizes)."""
GPU_CHUNK_BYTES = 2**28
MOST_ROWS_FOR_WIDTH = 256


def chunk_rows(vocabulary_size: int, width: int, element_size: int, device_type: str) -> int:
    """How many rows of logits to hold at a time.

    As many as the budget holds, and at least as many as the weights are wide, up to 256: each chunk also reads and
    writes the V x D gradient of the weights, which outweighs its own n x V where n is below D.
    """
    budget = GPU_CHUNK_BYTES if device_type == "cuda" else CPU_CHUNK_BYTES
    return max(32, min(width, MOST_ROWS_FOR_WIDTH), budget // (vocabulary_size * element_size))
