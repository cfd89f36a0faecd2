"""Look at sweeps in a browser: a local page over the store and the storage, live while a sweep
runs.

The pages are Dash's, served by waitress. What they show is read here and laid out here; numbers of
studies come from `analysis`, sentences from `report`. Nothing is written but a request to stop."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
