"""Variants of a study: settings given with `--set`, the names of trials, what a user brings."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
