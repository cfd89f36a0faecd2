"""Plan, schedule, record, analyse and report the trials of a study.

From Python: `run`, `results`, `epochs`, `spectra` and `trained`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
