"""Weights through a file: whole or not at all, gone afterwards, and no endless waiting."""

import asyncio
from pathlib import Path

import pytest
import torch

from pv_cpu import checkpoint_engine
from pv_cpu.checkpoint_engine import NAME, FileCheckpointEngine
from pv_cpu.errors import WeightSyncError

WEIGHTS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4, dtype=torch.bfloat16)}


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(checkpoint_engine, "_shared_memory", lambda: tmp_path)
    return tmp_path


def connected(senders: int = 1, receivers: int = 1, **kwargs):
    engines = [FileCheckpointEngine(bucket_size=1, **kwargs) for _ in range(senders + receivers)]
    metadata = [engine.prepare() for engine in engines]
    actor, rollout = FileCheckpointEngine.build_topology(senders, receivers, metadata)
    for topology, group in ((actor, engines[:senders]), (rollout, engines[senders:])):
        for rank, engine in enumerate(group):
            engine.init_process_group(**{key: values[rank] for key, values in topology.items()})
    return engines[:senders], engines[senders:]


async def received(engine: FileCheckpointEngine) -> dict[str, torch.Tensor]:
    return {name: tensor async for name, tensor in engine.receive_weights(global_steps=3)}


def test_every_receiver_gets_what_rank_zero_sent(directory):
    async def exchange():
        waiting = [asyncio.create_task(received(engine)) for engine in receivers]
        await asyncio.sleep(0.05)
        for rank, engine in enumerate(senders):
            await engine.send_weights((name, tensor + rank) for name, tensor in WEIGHTS.items())
        return await asyncio.gather(*waiting)

    senders, receivers = connected(senders=2, receivers=3)
    for weights in asyncio.run(exchange()):
        assert weights.keys() == WEIGHTS.keys()
        assert all(torch.equal(weights[name], tensor) for name, tensor in WEIGHTS.items())
        assert weights["b"].dtype == torch.bfloat16


def test_the_file_is_removed_when_everybody_is_done(directory):
    (sender,), (receiver,) = connected()
    asyncio.run(sender.send_weights(WEIGHTS.items()))
    receiver.finalize()
    assert len(list(directory.iterdir())) == 1
    sender.finalize()
    assert list(directory.iterdir()) == []


def test_a_sender_that_fails_leaves_no_file(directory, monkeypatch):
    def half_a_file(tensors, path):
        Path(path).write_bytes(b"half")
        raise OSError("no space left")

    (sender,), (receiver,) = connected(timeout_seconds=0.05)
    monkeypatch.setattr(torch, "save", half_a_file)
    with pytest.raises(OSError, match="no space left"):
        asyncio.run(sender.send_weights(WEIGHTS.items()))
    assert list(directory.iterdir()) == []
    with pytest.raises(WeightSyncError, match=r"of step 3 did not come .* within 0.05 s"):
        asyncio.run(received(receiver))


def test_each_sync_has_a_file_of_its_own():
    engine = FileCheckpointEngine(bucket_size=1)
    assert engine.prepare()["path"] != engine.prepare()["path"]


def test_an_engine_that_was_not_connected_says_so():
    with pytest.raises(WeightSyncError, match="before init_process_group"):
        asyncio.run(FileCheckpointEngine(bucket_size=1).send_weights([]))


def test_verls_registry_knows_the_engine():
    from verl.checkpoint_engine.base import CheckpointEngineRegistry

    assert CheckpointEngineRegistry.get(NAME) is FileCheckpointEngine
