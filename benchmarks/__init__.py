"""Benchmarks against other packages, as ratios within one run; ``python -m benchmarks`` runs all of them."""

import os

# Set before numpy is imported: with more than one thread, the ratios would compare thread pools.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
