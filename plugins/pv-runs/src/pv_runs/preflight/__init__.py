"""Preflight: checks of a run before it starts, which find what would cost money later. They do not start Ray.

Each check takes a composed config and a `Machine`, and yields findings: `wrong` stops the run.
"""

from pv_runs.preflight.examine import Checks, MoreChecks, examine, faults
from pv_runs.preflight.machine import Machine, Node, this_machine

__all__ = ["Checks", "Machine", "MoreChecks", "Node", "examine", "faults", "this_machine"]
