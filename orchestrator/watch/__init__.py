"""Everyone who follows a sweep: terminal, metrics of Ray, MLflow, TensorBoard."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
