"""Ray and its machines: connection, preflight checks, resources."""

from orchestrator.cluster.environment import set_environment
from trainables import door

set_environment()
__getattr__, __dir__ = door(__name__, __file__)
