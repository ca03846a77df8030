"""Field data of slowpath: compare launches of many machines, find the slow slice, judge an experiment."""

from .errors import FleetError
from .notebook import Fleet, View

__all__ = ["Fleet", "FleetError", "View"]
