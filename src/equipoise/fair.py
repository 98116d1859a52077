"""The fair comparison of embedding models on your document. The names are listed in ``domains/fair/api.py``."""

from equipoise.domains.fair.api import PUBLIC_NAMES
from equipoise.lazy import lazy_module

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
