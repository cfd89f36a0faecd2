"""Whether a GPU computes what it should, and as fast as it could: `python sweep.py prove-gpu`."""
