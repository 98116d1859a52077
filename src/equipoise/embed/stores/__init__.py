"""Where vectors live and who is nearest: one contract, several engines."""

from equipoise.embed.stores.base import Hits, Store
from equipoise.embed.stores.open import KINDS, store
from equipoise.embed.stores.recall import RecallReport, index_recall

__all__ = ["KINDS", "Hits", "RecallReport", "Store", "index_recall", "store"]
