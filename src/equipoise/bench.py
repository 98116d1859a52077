"""A benchmark of embedding models on your own data. The names are listed in ``domains/bench/api.py``."""

from equipoise.domains.bench.api import PUBLIC_NAMES
from equipoise.lazy import lazy_module

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
