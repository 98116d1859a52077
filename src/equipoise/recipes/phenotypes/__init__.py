"""Phenotype terms, by the names of their source."""
