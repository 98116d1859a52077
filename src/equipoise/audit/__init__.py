"""The audit of published tables: which figures cannot be, and why."""

from equipoise.audit.audit import Audit, audit_table
from equipoise.audit.rules import CHECKS

__all__ = ["CHECKS", "Audit", "audit_table"]
