"""Packs of trials, their order, attempts, and what becomes of a pack."""
