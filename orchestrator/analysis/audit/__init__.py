"""The papers' printed numbers, recomputed from each other, from configs and from files."""
