"""Next-location evaluation. The names are listed in ``domains/places/api.py``."""

from equipoise.domains.places.api import PUBLIC_NAMES
from equipoise.lazy import lazy_module

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
