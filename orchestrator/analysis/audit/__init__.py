"""Checks of the papers' printed numbers against each other, configs and files."""
