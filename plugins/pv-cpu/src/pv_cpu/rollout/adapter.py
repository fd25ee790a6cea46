"""The rollout's end in the trainer: collects the weights and hands them to the server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import ray
import torch
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.utils import ensure_async_iterator

from pv_cpu.errors import UnsupportedOnCpuError
from pv_cpu.rollout.replica import server_name

__all__ = ["ServerAdapter"]


class ServerAdapter(BaseRollout):
    """Lives in each trainer rank (hybrid) or in a ``CheckpointEngineWorker`` (standalone).

    The replica of a trainer rank is the one with the same number, because a replica is one process.
    """

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1) -> None:
        super().__init__(config, model_config, device_mesh)
        self.replica_rank = int(os.environ["RANK"]) if replica_rank == -1 else replica_rank
        self.is_leader_rank = True
        self._server: Any = None

    async def resume(self, tags: list[str]) -> None:
        """The server never gave anything back."""

    async def release(self) -> None:
        """There is no accelerator memory to give back."""

    async def update_weights(
        self,
        weights: Iterable[tuple[str, torch.Tensor]],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        peft_config: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Send all weights at once; ``WeightSyncError`` if they are not those of the rollout model."""
        if wire_format != "named_tensors" or peft_config is not None:
            what = "adapters" if peft_config is not None else f"wire_format={wire_format!r}"
            raise UnsupportedOnCpuError(
                f"rollout.name=pv_cpu takes whole tensors, not {what}; set "
                "actor_rollout_ref.model.lora.merge=True for LoRA, and do not use delta_sharded"
            )
        # Every rank takes part in gathering. On one rank FSDP2 yields the live parameters
        # themselves, which the next optimizer step changes: hence the copy.
        tensors = {
            name: tensor.detach().cpu().clone() async for name, tensor in ensure_async_iterator(weights)
        }
        if self._server is None:
            self._server = ray.get_actor(server_name(self.replica_rank))
        await self._server.load_weights.remote(tensors, global_steps)
