"""Where the cells of an evaluation run: in this process, or on the machines of a cluster.

An engine maps a pure function over cells and does nothing else, so that every engine gives the same figures.
"""
