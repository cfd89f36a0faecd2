"""Proof that a GPU computes correctly and fast enough: `python sweep.py prove-gpu`.

Needs only torch, numpy and pydantic; stages with checkpoints also need safetensors.
"""
