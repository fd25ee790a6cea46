"""A CPU platform for verl: inert unless the environment says ``VERL_PLATFORM=cpu``.

One patch serves small models on GPUs too: ``PV_CPU_POLL_SECONDS=0.2`` sets how often verl's replay buffer looks for
finished rollouts (every 2 s without it).

verl loads this module in every process that imports verl (``verl/__init__.py:61-80``, entry points
of the group ``verl.plugins``). It only calls ``EntryPoint.load()``, so the work happens at import
time, and it logs a failure at DEBUG, so an error is logged here before it is raised again.
"""

import logging
import os

__all__ = ["asked_for"]


def asked_for() -> bool:
    """Whether this process was started with ``VERL_PLATFORM=cpu`` (any case)."""
    return os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu"


if asked_for():
    try:
        from pv_cpu.activation import activate

        activate()
    except Exception:  # any failure: verl hides it, and the user would see an unrelated error later
        logging.getLogger(__name__).exception(
            "pv-cpu could not activate the CPU platform that VERL_PLATFORM=cpu asks for"
        )
        raise
elif "PV_CPU_POLL_SECONDS" in os.environ:
    from pv_cpu.patches import poll_interval

    poll_interval.install()
