"""Corpora larger than memory: write shards, search them exactly, rank among them, on one or several machines."""

from equipoise.lazy_imports import lazy_module

PUBLIC_NAMES = {
    "executor": "equipoise.runs.executors",
    "nearest_in_shards": "equipoise.geometry.sharded_search",
    "open_shards": "equipoise.geometry.shards",
    "ranking_from_shards": "equipoise.evidence.ranking_from_vectors",
    "resumable_map": "equipoise.runs.runner",
    "write_shards": "equipoise.geometry.shards",
}

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
