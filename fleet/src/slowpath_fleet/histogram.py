"""Quantiles of a log-bucket histogram. Pure; arrays of numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .bins import LN_GAMMA, PLACES, ZERO_BIN

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Histogram:
    """Launches in bins; `bins` ascend, `counts` > 0, `places` are sums of the places in the bin."""

    bins: Integers
    counts: Integers
    places: Integers

    @staticmethod
    def of(bins: Integers, counts: Integers, places: Integers) -> Histogram:
        """Adds up cells in any order."""
        found, where = np.unique(bins, return_inverse=True)
        total = np.zeros(len(found), np.int64)
        place = np.zeros(len(found), np.int64)
        np.add.at(total, where, counts)
        np.add.at(place, where, places)
        used = total > 0
        return Histogram(found[used].astype(np.int64), total[used], place[used])

    @property
    def n(self) -> int:
        """Launches."""
        return int(self.counts.sum())

    def share_up_to(self, last_bin: int) -> float:
        """Share of the launches in bins up to `last_bin`."""
        return float(self.counts[self.bins <= last_bin].sum() / max(1, self.n))

    def quantile(self, share: float) -> float:
        """Value at a share in 0..1; NaN where there is no launch.

        The bin is exact, and so the value is within the bin's 2 %. Inside it is interpolated on the log scale around
        the mean place of what the bin holds: exact for values that are all alike, and for an even spread.
        """
        if not self.n:
            return float("nan")
        upto = np.cumsum(self.counts)
        target = min(max(share, 0.0), 1.0) * upto[-1]
        at = int(np.searchsorted(upto, target, side="left"))
        at = min(at, len(upto) - 1)
        if self.bins[at] == ZERO_BIN:
            return 0.0
        count = float(self.counts[at])
        part = min(1.0, max(0.0, (target - (upto[at] - count)) / count))
        # Places are floors: half a step is lost on average.
        mean = (float(self.places[at]) / count + 0.5) / PLACES
        inside = mean + (2 * part - 1) * min(mean, 1 - mean)
        return float(np.exp((float(self.bins[at]) - 1 + inside) * LN_GAMMA))

    def bin_at(self, share: float) -> int:
        """Bin that holds the quantile."""
        upto = np.cumsum(self.counts)
        at = int(np.searchsorted(upto, share * upto[-1], side="left"))
        return int(self.bins[min(at, len(upto) - 1)])
