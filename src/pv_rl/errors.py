"""Errors of pv-rl: one root class, and a standard co-base each, so that callers need not import these classes.

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
    """A loss-aggregation spec that cannot be read, or inputs for which no weighting is defined."""


class DataError(PvRlError, ValueError):
    """A data file, a label or a trace of a wrong form."""


class PluginError(PvRlError, RuntimeError):
    """A plugin that cannot be loaded, or that adds a name which another plugin owns."""


class VerlError(PvRlError, RuntimeError):
    """The adapter does not support the installed verl."""


class SetupError(PvRlError, RuntimeError):
    """The environment lacks something that a command needs."""


class ConfigError(PvRlError, ValueError):
    """A setting that is unknown, of the wrong type or out of bounds."""


class JudgeError(PvRlError, RuntimeError):
    """A judge that gave no usable answer."""


class RunHalted(PvRlError, RuntimeError):
    """A run that stopped after a checkpoint, because its judge or its reward failed too often."""
