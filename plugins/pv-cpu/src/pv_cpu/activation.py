"""What happens in a process that asked for the CPU platform."""

import logging

from pv_cpu import environment, patches, rollout

__all__ = ["activate"]

logger = logging.getLogger(__name__)


def activate() -> None:
    """Set the environment, register platform and rollout engine, install the patches. Idempotent."""
    environment.apply()
    import pv_cpu.platform  # noqa: F401  (importing it registers the platform)

    rollout.register()
    patches.apply()
    logger.debug("the CPU platform of pv-cpu is active")
