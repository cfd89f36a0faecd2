"""Plan, schedule, record, analyse and report the trials of a study.

From Python: `run`, `results`, `epochs`, `spectra` and `trained`.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
