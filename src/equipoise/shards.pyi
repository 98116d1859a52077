# Written by scripts/write_stubs.py from PUBLIC_NAMES. Do not edit.

from equipoise.evidence.ranking_from_vectors import ranking_from_shards as ranking_from_shards
from equipoise.geometry.sharded_search import nearest_in_shards as nearest_in_shards
from equipoise.geometry.shards import open_shards as open_shards
from equipoise.geometry.shards import write_shards as write_shards
from equipoise.runs.executors import executor as executor
from equipoise.runs.runner import resumable_map as resumable_map
