"""Figures that someone published: read with their printed digits, whatever the table looks like."""

from equipoise.data.published.printed import Printed, printed
from equipoise.data.published.read import read_published
from equipoise.data.published.record import Cell, Published, Record

__all__ = ["Cell", "Printed", "Published", "Record", "printed", "read_published"]
