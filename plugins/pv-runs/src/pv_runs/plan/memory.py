"""The memory of every place of a run."""

from __future__ import annotations

from dataclasses import dataclass

from pv_runs.plan.host_memory import host_parts
from pv_runs.plan.parts import Part, Phase
from pv_runs.plan.rollout_memory import KvCache, kv_cache, rollout_phases
from pv_runs.plan.setup import Setup
from pv_runs.plan.training_memory import training_phases

__all__ = ["Memory", "memory_of"]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What is where, and whether it fits."""

    phases: tuple[Phase, ...]
    """Of the GPUs; each place has to bear each of its phases."""
    host: tuple[Part, ...]
    """Of one training node."""
    host_available_gib: float | None
    """None: not known, and not checked."""
    kv_cache: KvCache

    @property
    def host_gib(self) -> float:
        """Of one training node."""
        return sum(part.gib for part in self.host)

    @property
    def over_gib(self) -> float:
        """GiB that are missing, over all phases and the host; 0 where everything fits."""
        known = self.host_available_gib
        host = 0.0 if known is None else max(0.0, self.host_gib - known)
        return host + sum(phase.over_gib for phase in self.phases)

    @property
    def fits(self) -> bool:
        """Whether all of it does."""
        return self.over_gib == 0


def memory_of(setup: Setup) -> Memory:
    """Compute it."""
    return Memory(
        phases=(*training_phases(setup), *rollout_phases(setup)),
        host=host_parts(setup),
        host_available_gib=setup.cluster.host_memory_gib,
        kv_cache=kv_cache(setup),
    )
