"""What a notebook asks for: data frames of what the store holds, a sweep, a trained model.

`frames` reads the store, `sweeps` runs a command, `models` opens what a trial has kept.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
