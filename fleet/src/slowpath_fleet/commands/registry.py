"""The commands, in the order of their use."""

from __future__ import annotations

from .command import Command
from .compare import COMPARE
from .experiment import EXPERIMENT
from .generate import GENERATE
from .ingest import INGEST
from .query import QUERY
from .slices import SLICES
from .watch import WATCH

COMMANDS: tuple[Command, ...] = (INGEST, COMPARE, SLICES, EXPERIMENT, WATCH, GENERATE, QUERY)
