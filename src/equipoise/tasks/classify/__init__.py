"""Classes from scores: where the right class landed and which class came first, from one look at each row."""

from equipoise.tasks.classify.classified import Classified, classify
from equipoise.tasks.classify.landing import Landed, landed

__all__ = ["Classified", "Landed", "classify", "landed"]
