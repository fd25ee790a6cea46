"""The machines: the config's node `cluster`."""

from __future__ import annotations

from pydantic import Field
from pydantic.dataclasses import dataclass

from pv_judge.config import STRICT, read_config
from pv_runs.plan.settings import Settings

__all__ = ["Cluster", "Gpu", "read_cluster"]

HINT = "choose one, for example by cluster=paper80"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Gpu:
    """One GPU, from its data sheet."""

    name: str
    memory_gib: float = Field(gt=0)
    bf16_tflops: float = Field(gt=0)
    """Dense bf16 peak, 1e12 operations a second, without sparsity."""
    bandwidth_tb_s: float = Field(gt=0)
    """Of its memory, 1e12 bytes a second."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What there is, not what the run takes of it."""

    nodes: int
    gpus_per_node: int
    gpu: Gpu
    host_memory_gib: float | None
    """GiB of a node; none: what a node needs is told and not checked."""


def read_cluster(settings: Settings) -> Cluster:
    """Read `cluster`.

    Raises:
        ConfigError: there is none, or a value is not what it should be.
    """
    gpu = settings.node("cluster.gpu", HINT)
    host = settings.value("cluster.host_memory_gib", None)
    return Cluster(
        nodes=settings.integer("cluster.nodes", least=1),
        gpus_per_node=settings.integer("cluster.gpus_per_node", least=1),
        gpu=read_config(gpu, Gpu, "cluster.gpu"),
        host_memory_gib=None if host is None else settings.number("cluster.host_memory_gib"),
    )
