"""Benchmarks on the data of the user, and statistics of published leaderboards."""
