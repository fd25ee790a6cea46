"""What verl launches for ``rollout.name=pv_cpu``: one server actor a replica."""

from __future__ import annotations

from typing import Any

import ray
from verl.workers.rollout.replica import RolloutReplica

from pv_cpu.errors import UnsupportedOnCpuError
from pv_cpu.rollout.server import PvCpuServer

__all__ = ["PvCpuReplica", "server_name"]


def server_name(replica_rank: int, name_suffix: str = "") -> str:
    """The name of a replica's actor in Ray, by which the trainer finds it."""
    return f"pv_cpu_server_{replica_rank}_0{name_suffix}"


class PvCpuReplica(RolloutReplica):
    """A replica of one process."""

    async def launch_servers(self) -> None:
        if self.world_size != 1:
            raise UnsupportedOnCpuError(
                f"rollout.name=pv_cpu is one process a replica, but tensor x data x pipeline parallel size "
                f"is {self.world_size}; set actor_rollout_ref.rollout.tensor_model_parallel_size=1 and "
                "data_parallel_size=1"
            )
        if self.is_reward_model or self.is_teacher_model:
            raise UnsupportedOnCpuError(
                "rollout.name=pv_cpu serves the policy only; run a reward or teacher model elsewhere and "
                "call it from a reward function"
            )
        server: Any = (
            ray.remote(PvCpuServer)
            .options(
                name=server_name(self.replica_rank, self.name_suffix),
                num_cpus=0,
                max_concurrency=self.max_concurrency,
            )
            .remote(self.config, self.model_config, self.replica_rank)
        )
        await server.ready.remote()
        self.servers = [server]
        self._server_handle = server
        self._server_address = f"pv_cpu:{self.replica_rank}"
