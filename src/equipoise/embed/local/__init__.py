"""Models that run here: their files, their graph, their worker processes."""
