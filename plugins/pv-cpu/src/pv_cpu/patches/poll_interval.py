"""The replay buffer looks for finished rollouts every 0.1 s instead of every 2 s.

Symptom without it: no step and no validation takes less than 2 s, however small the model.
``ReplayBuffer.__init__`` has ``poll_interval=2.0`` (``trainer/ppo/v1/replay_buffer.py:144``) and
``trainer_base._build_replay_buffer`` passes no other value, so a configuration cannot change it.
``PV_CPU_POLL_SECONDS`` sets the interval.

Can go when verl reads the interval from ``trainer.v1.sampler``.
"""

from __future__ import annotations

import functools
import math
import os
from types import ModuleType

from pv_cpu.errors import UnsupportedOnCpuError
from pv_cpu.patches import tools

__all__ = ["MODULE", "VARIABLE", "install", "patch", "poll_seconds"]

MODULE = "verl.trainer.ppo.v1.replay_buffer"
VARIABLE = "PV_CPU_POLL_SECONDS"
DEFAULT_SECONDS = 0.1


def poll_seconds() -> float:
    """The interval that the environment asks for, 0.1 s if it asks for none."""
    text = os.environ.get(VARIABLE, str(DEFAULT_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UnsupportedOnCpuError(
            f"{VARIABLE}={text!r} is not a positive number of seconds; unset it for {DEFAULT_SECONDS}"
        )
    return seconds


def patch(replay_buffer: ModuleType) -> None:
    buffer_class = tools.attribute(replay_buffer, "ReplayBuffer")
    original = buffer_class.__init__
    if tools.is_patched(original):
        return
    tools.require_parameters(original, "poll_interval")
    seconds = poll_seconds()

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.poll_interval = seconds

    buffer_class.__init__ = tools.mark(__init__)


def install() -> None:
    tools.after_import(MODULE, patch)
