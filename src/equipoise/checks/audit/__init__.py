"""The audit of published tables: which figures cannot be, and why."""

from equipoise.checks.audit.audit import Audit, audit_table
from equipoise.checks.audit.laws import CHECKS

__all__ = ["CHECKS", "Audit", "audit_table"]
