"""Look at sweeps in a browser: a local page over the store and the storage, live while a sweep
runs.

The pages are Dash's, served by waitress. What they show is read here and laid out here; numbers of
studies come from `analysis`, sentences from `report`. Nothing is written but a request to stop."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
