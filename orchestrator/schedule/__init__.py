"""Run trials in packs with Ray Tune: order, retries and outcomes."""

import orchestrator.cluster  # sets Ray's environment, before a file here imports Ray
from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
