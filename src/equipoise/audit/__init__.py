"""Audit of published tables: find values that are arithmetically impossible, and show why."""

from equipoise.audit.apply_rules import Audit, audit_table
from equipoise.audit.rules import CHECKS

__all__ = ["CHECKS", "Audit", "audit_table"]
