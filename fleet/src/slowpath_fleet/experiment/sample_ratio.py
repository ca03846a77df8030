"""Whether the arms have as many users as the assignment says: where not, nothing else can be trusted.

Chi-squared test of the users of all arms, with the level of 0.001 that is usual for a check that is always made
(Fabijan et al., KDD 2019).
"""

from __future__ import annotations

import numpy as np

from ..errors import wrong_usage
from ..printed import SampleRatio
from ..reference_distributions import chi_squared_above

LEVEL = 0.001


def sample_ratio(users: dict[str, int], expected: dict[str, float]) -> SampleRatio:
    """Compares users by arm with the expected shares; without any, equal ones are assumed."""
    unknown = sorted(set(expected) ^ set(users)) if expected else []
    if unknown:
        why = f"[arms] and the data differ in {unknown[0]}"
        raise wrong_usage("cannot check the sample ratio", "", why, f"name the arms {', '.join(sorted(users))}")
    shares = np.array([expected.get(name, 1.0) for name in users], np.float64)
    shares /= shares.sum()
    seen = np.array(list(users.values()), np.float64)
    due = shares * seen.sum()
    p = chi_squared_above(float(((seen - due) ** 2 / due).sum()), len(seen) - 1)
    return SampleRatio(p, p >= LEVEL, users, dict(zip(users, shares.tolist(), strict=True)), not expected)
