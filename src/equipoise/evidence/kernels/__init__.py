"""Rank counts: how many scores of a row are above a target's score, and how many are equal to it.

Two families of kernels exist. ``rank_counts*`` count scores of a matrix, ``point_counts*`` count distances
between points. ``dispatch.rank_targets`` is the interface to the first family: it chooses numpy
(``rank_counts``), LLVM (``rank_counts_llvm``) or a GPU (``rank_counts_gpu``) from the
type and the size of the array. All return the same ``RankCounts``. ``point_counts.count_points`` is the
interface to the second family; its inner loops are compiled by numba (``point_counts_numba``).
``threshold_counts`` counts scores above several thresholds per row, for the constructors of ``Ranking``.
"""
