"""Charts of accounts and other trees. The names are listed in ``domains/accounts/api.py``."""

from equipoise.domains.accounts.api import PUBLIC_NAMES
from equipoise.lazy import lazy_module

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
