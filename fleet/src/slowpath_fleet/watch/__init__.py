"""`watch`: daily series of every slice, and the days on which they changed."""

from .analysis import WatchOptions, watch

__all__ = ["WatchOptions", "watch"]
