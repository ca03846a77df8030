"""`experiment`: what an arm changed, and whether the experiment can be trusted."""

from .analysis import ExperimentOptions, analyse

__all__ = ["ExperimentOptions", "analyse"]
