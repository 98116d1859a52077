"""Every user counts alike: the means of users, and their mean."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from equipoise.types import Floats, Ids


def user_means(columns: Mapping[str, Floats | None], users: Ids) -> tuple[Ids, dict[str, Floats]]:
    """The users, each once, and the mean of each column over the rows of each user.

    >>> names, means = user_means({"hit": np.array([1.0, 0.0, 1.0])}, np.array(["b", "a", "b"]))
    >>> names.tolist(), means["hit"].tolist()
    (['a', 'b'], [0.0, 1.0])
    """
    names, codes, sizes = np.unique(users, return_inverse=True, return_counts=True)
    codes = codes.reshape(-1)
    return names, {
        name: np.bincount(codes, weights=column, minlength=len(names)) / sizes
        for name, column in columns.items()
        if column is not None
    }
