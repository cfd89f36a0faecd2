"""Checks of printed numbers against other printed numbers, model configs and corpus files."""
