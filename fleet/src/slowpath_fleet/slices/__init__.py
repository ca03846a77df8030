"""`slices`: which combinations of conditions hold the gap at a quantile."""

from .search import SliceOptions, find_slices, nothing_found

__all__ = ["SliceOptions", "find_slices", "nothing_found"]
