"""Measurements against other packages, each a ratio within one run; ``python -m benchmarks`` runs all."""

import os

# Before numpy is loaded anywhere: one thread each, or the ratios would compare thread pools.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
