"""Weights from trainer to rollout through a file in shared memory, for the asynchronous trainers.

``rollout.checkpoint_engine.backend=pv_cpu_file`` with ``custom_backend_module=pv_cpu.checkpoint_engine``
(the config group ``cluster=cpu`` sets the latter). verl's own engines need NCCL, NIXL or the like, and
its "naive" one needs trainer and rollout in one process.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import torch
from verl.checkpoint_engine.base import CheckpointEngine, CheckpointEngineRegistry
from verl.workers.rollout.utils import ensure_async_iterator

from pv_cpu.errors import WeightSyncError

__all__ = ["NAME", "FileCheckpointEngine"]

NAME = "pv_cpu_file"
POLL_SECONDS = 0.02


def _shared_memory() -> Path:
    """A directory in memory if the system has one, else the directory for temporary files."""
    shm = Path("/dev/shm")
    return shm if os.access(shm, os.W_OK) else Path(tempfile.gettempdir())


@CheckpointEngineRegistry.register(NAME)  # pyright: ignore[reportAttributeAccessIssue]  (a static method by use)
class FileCheckpointEngine(CheckpointEngine):
    """Rank 0 of the trainer writes a file, every rollout worker of the same host reads it."""

    def __init__(self, bucket_size: int, is_master: bool = False, timeout_seconds: float = 300.0) -> None:
        self.is_master = is_master
        self.timeout_seconds = timeout_seconds
        """How long a receiver waits, ``checkpoint_engine.engine_kwargs.pv_cpu_file.timeout_seconds``."""
        self.path: Path | None = None
        self.sender = False

    def prepare(self) -> dict[str, Any]:
        return {"path": str(_shared_memory() / f"pv_cpu_weights_{os.getpid()}_{uuid.uuid4().hex}.pt")}

    @classmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[dict]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        path = metadata[0]["path"]

        def arguments(size: int, senders: int) -> dict[str, list[Any]]:
            return {"path": [path] * size, "sender": [rank < senders for rank in range(size)]}

        return arguments(actor_wg_world_size, 1), arguments(rollout_world_size, 0)

    def init_process_group(self, *, path: str, sender: bool) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.path, self.sender = Path(path), sender

    def finalize(self) -> None:
        """Remove the file; called when every worker is done with it."""
        if self.path is not None and self.sender:
            self.path.unlink(missing_ok=True)
        self.path = None

    async def send_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]], global_steps: int | None = None
    ) -> None:
        """Every rank gathers the tensors, rank 0 writes them. The file appears when it is complete."""
        path = self._known_path()
        tensors = {}
        async for name, tensor in ensure_async_iterator(weights):
            if self.sender:
                tensors[name] = tensor.detach().cpu().clone()
        if not self.sender:
            return
        part = path.with_suffix(".part")
        try:
            torch.save(tensors, part)
            part.rename(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    async def receive_weights(  # pyright: ignore[reportIncompatibleMethodOverride]  (verl iterates)
        self, global_steps: int | None = None
    ) -> AsyncIterator[tuple[str, torch.Tensor]]:
        path = self._known_path()
        deadline = time.monotonic() + self.timeout_seconds
        while not path.exists():
            if time.monotonic() > deadline:
                raise WeightSyncError(
                    f"the trainer's weights of step {global_steps} did not come to {path} within "
                    f"{self.timeout_seconds:g} s; did the trainer fail, or does it run on another host? "
                    "For a large model raise checkpoint_engine.engine_kwargs.pv_cpu_file.timeout_seconds"
                )
            await asyncio.sleep(POLL_SECONDS)
        for name, tensor in torch.load(path, map_location="cpu", weights_only=True).items():
            yield name, tensor

    def _known_path(self) -> Path:
        if self.path is None:
            raise WeightSyncError("weights were sent or awaited before init_process_group named the file")
        return self.path
