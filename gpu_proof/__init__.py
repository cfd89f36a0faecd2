"""Proof that a GPU computes the right numbers, and fast enough: `python sweep.py prove-gpu`.

Needs torch, numpy and pydantic alone; the stages that write checkpoints also need safetensors.
"""
