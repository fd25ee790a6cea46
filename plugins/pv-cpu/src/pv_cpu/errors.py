"""The errors of this package: one root, each with a standard co-base, all of them picklable."""

__all__ = ["PvCpuError", "UnsupportedOnCpuError", "VerlChangedError", "WeightSyncError"]


class PvCpuError(Exception):
    """Root of every error that pv-cpu raises on purpose."""


class UnsupportedOnCpuError(PvCpuError, ValueError):
    """The configuration or a request asks for something that the CPU platform cannot do."""


class VerlChangedError(PvCpuError, RuntimeError):
    """A name or a signature inside verl that pv-cpu relies on is no longer what it was."""


class WeightSyncError(PvCpuError, RuntimeError):
    """The weights that the trainer sent are not the weights that the rollout model has."""
