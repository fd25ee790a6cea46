"""What no registry of verl covers, one patch a module.

Each patch waits for its module to be imported (``import verl`` stays light), checks that what it
relies on is still there, and replaces references that other modules took earlier.
"""

from pv_cpu.patches import (
    offload_policy,
    poll_interval,
    process_group,
    ray_cluster,
    torchrun_group,
    trl_beside,
    value_model,
    worker_start,
)

__all__ = ["PATCHES", "apply"]

# worker_start first: its server imports while the driver does.
PATCHES = (
    worker_start,
    process_group,
    torchrun_group,
    offload_policy,
    poll_interval,
    value_model,
    ray_cluster,
    trl_beside,
)


def apply() -> None:
    """Install every patch. A second call changes nothing."""
    for patch in PATCHES:
        patch.install()
