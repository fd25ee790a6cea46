"""Processes that stay: one host imports verl once and forks the ranks of each world size when it is first asked for."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import traceback
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import psutil

from grid.cases import Case
from grid.model import save_model
from grid.oracle import Row

START_TIMEOUT = 180
CASE_TIMEOUT = 120


class RankError(RuntimeError):
    """A rank failed; the text is its traceback."""


class Ranks:
    """Runs cases in real process groups of 1, 2 or 4 ranks. A context manager: nothing is left behind."""

    def __enter__(self) -> Ranks:
        self.folder = tempfile.TemporaryDirectory(prefix="grid-")
        self.model = Path(self.folder.name) / "model"
        save_model(self.model)
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.host = context.Process(target=host, args=(theirs, self.folder.name), name="grid-host")
        self.host.start()
        theirs.close()
        return self

    def __exit__(self, *exception: object) -> None:
        self.connection.close()  # the host takes it as the end
        self.host.join(20)
        if self.host.is_alive():
            self.host.kill()  # its ranks notice
            self.host.join()
        self.folder.cleanup()

    def processes(self) -> list[psutil.Process]:
        """Everything that was started."""
        host = psutil.Process(self.host.pid)
        return [host, *host.children(recursive=True)]

    def run(
        self, case: Case, rows: list[Row], scores: list[float], *, dtype: str, local: bool = False
    ) -> Any:
        """`(updates, advantages)` of `grid.worker.run_case`."""
        self.connection.send((case.ranks, (case, rows, scores, dtype, local)))
        if not self.connection.poll(START_TIMEOUT + CASE_TIMEOUT):
            raise RankError(f"no answer to {case} after {START_TIMEOUT + CASE_TIMEOUT} s")
        answer = self.connection.recv()
        if isinstance(answer, str):
            raise RankError(answer)
        return answer


class World:
    """The ranks of one process group, as the host sees them."""

    def __init__(self, ranks: int, folder: str) -> None:
        context = multiprocessing.get_context("fork")
        rendezvous = f"{folder}/world-{ranks}-{os.urandom(4).hex()}"  # a file that is not there yet
        self.connections: list[Connection] = []
        self.processes = []
        for rank in range(ranks):
            ours, theirs = context.Pipe()
            arguments = (theirs, rank, ranks, folder, rendezvous)
            process = context.Process(target=rank_main, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self.connections.append(ours)
            self.processes.append(process)

    def run(self, message: Any, client: Connection) -> Any:
        """The answer of rank 0, or the traceback of the first rank that failed."""
        for connection in self.connections:
            connection.send(message)
        waiting = list(self.connections)
        answer: Any = None
        while waiting:
            ready = wait([*waiting, client], timeout=START_TIMEOUT + CASE_TIMEOUT)
            if not ready:
                return "the ranks did not answer in time"
            if client in ready:
                return "the client has gone"
            for connection in ready:
                waiting.remove(connection)
                try:
                    received = connection.recv()
                except EOFError:
                    return "a rank has ended"
                if isinstance(received, str):
                    return received
                if connection is self.connections[0]:
                    answer = received
        return answer

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()


def host(connection: Connection, folder: str) -> None:
    """Serve cases until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent closes the pipe
    on_cpu()
    log = os.open(f"{folder}/log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)  # verl and transformers say a lot; what matters comes back as an answer
    os.dup2(log, 2)
    from grid.worker import prepare

    prepare(f"{folder}/model")  # the long part, done once; forked ranks have it

    worlds: dict[int, World] = {}
    try:
        while True:
            try:
                ranks, message = connection.recv()
            except EOFError:
                return
            if ranks not in worlds:
                worlds[ranks] = World(ranks, folder)
            answer = worlds[ranks].run(message, connection)
            if isinstance(answer, str):  # others of its ranks may wait for one another
                worlds.pop(ranks).stop()
            with contextlib.suppress(BrokenPipeError):
                connection.send(answer)
    finally:
        for world in worlds.values():
            world.stop()


def rank_main(connection: Connection, rank: int, ranks: int, folder: str, rendezvous: str) -> None:
    """Serve cases as one rank; end when the host has gone."""
    parent = os.getppid()
    join(rank, ranks, rendezvous)
    import torch

    from grid import worker

    torch.set_num_threads(1)
    actors: dict[str, worker.Actor] = {}
    while True:
        while not connection.poll(1):
            if os.getppid() != parent:
                return
        case, rows, scores, dtype, local = connection.recv()
        try:
            if dtype not in actors:
                actors[dtype] = worker.watch(worker.build_actor(f"{folder}/model", dtype))
            answer = worker.run_case(actors[dtype], case, rows, scores, local=local)
        except Exception:  # noqa: BLE001 - goes to the test, whatever it is
            connection.send(f"{case} on rank {rank}: {traceback.format_exc()}")
            continue
        connection.send(answer if rank == 0 else None)


def join(rank: int, ranks: int, rendezvous: str) -> None:
    """Set what verl's workers read of the process group they are in."""
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",  # not used: the rendezvous is a file
        "DIST_INIT_METHOD": f"file://{rendezvous}",
    }


def on_cpu() -> None:
    """What has to be set before verl is imported."""
    for name in [name for name in os.environ if name.startswith(("VERL_", "RAY_", "PV_CPU_"))]:
        del os.environ[name]
    os.environ |= {
        "VERL_PLATFORM": "cpu",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "TQDM_DISABLE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
