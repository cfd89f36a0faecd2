"""A small process around every command: it answers signals, ends what is left, and starts a crashed
sweep again."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
