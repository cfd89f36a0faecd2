"""Where the files of trials, reports and corpora are: a folder or an object store."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
