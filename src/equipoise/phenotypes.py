"""Phenotype terms in clinical text. The names are listed in ``domains/phenotypes/api.py``."""

from equipoise.domains.phenotypes.api import PUBLIC_NAMES
from equipoise.lazy import lazy_module

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
