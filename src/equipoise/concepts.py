"""Sentence models on a concept set. The names are listed in ``domains/concepts/api.py``."""

from equipoise.domains.concepts.api import PUBLIC_NAMES
from equipoise.lazy import lazy_module

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
