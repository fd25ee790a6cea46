"""The errors of pv-rl: one root class, and a standard co-base each so that callers need not know us.

All are raised with one message string, so that they pickle and Ray can carry them between processes.
"""

__all__ = [
    "ConfigError",
    "DataError",
    "JudgeError",
    "LossModeError",
    "PluginError",
    "PvRlError",
    "RunHalted",
    "SetupError",
    "VerlError",
]


class PvRlError(Exception):
    """Root of every error that pv-rl raises on purpose."""


class LossModeError(PvRlError, ValueError):
    """A loss-aggregation spec that cannot be read, or inputs that no weighting is defined for."""


class DataError(PvRlError, ValueError):
    """A data file, a label or a trace that is not what it should be."""


class PluginError(PvRlError, RuntimeError):
    """A plugin that could not be loaded or that claims a name which another plugin owns."""


class VerlError(PvRlError, RuntimeError):
    """The installed verl is not one that the adapter knows how to serve."""


class SetupError(PvRlError, RuntimeError):
    """The environment lacks something that a command needs."""


class ConfigError(PvRlError, ValueError):
    """A setting that is unknown, of the wrong type or out of bounds."""


class JudgeError(PvRlError, RuntimeError):
    """A judge that gave no answer which can be used."""


class RunHalted(PvRlError, RuntimeError):
    """A run that was stopped after a checkpoint: its judge or its reward failed too often."""
