"""One run of a study: what is missing, run it, recover what an earlier run left, report."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
