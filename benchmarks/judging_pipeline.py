"""How long does `pv-data` take for the paper's 104,520 judgments, beside the time that the judge itself takes?

A server of its own processes answers every request after `--latency` seconds. Ideal is judgments x latency /
concurrency. Proofs are of the length of real ones. Printed: seconds, the ratio to ideal, and the most memory that the
process of the run and any of those that ask for it took, for a tenth of the set and for all, which should be the same.

    python benchmarks/judging_pipeline.py --workers 10 --servers 3 --executor local
    python benchmarks/judging_pipeline.py --workers 10 --servers 3 --executor ray
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from pv_data.records import Label, Problem, Proof
from pv_data.run.stage import ROWS
from pv_data.table import read_rows, write_part

ASKING = ("ray::do_part", "multiprocessing.spawn")
LOOK_S = 0.5
"""How often memory is looked at."""
JUDGMENT = json.dumps(
    dict.fromkeys([*(f"condition{n}_satisfied" for n in range(1, 5)), "proof_correct"], True)
)
BODY = json.dumps(
    {
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": JUDGMENT}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 1500, "completion_tokens": 50, "total_tokens": 1550},
    }
).encode()
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    + str(len(BODY)).encode()
    + b"\r\n\r\n"
    + BODY
)


class Connection(asyncio.Protocol):
    """One keep-alive connection: reads requests by Content-Length, answers each after the latency."""

    latency_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.buffer = transport, bytearray()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:end]).lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self.buffer) < end + 4 + length:
                return
            del self.buffer[: end + 4 + length]
            asyncio.get_running_loop().call_later(self.latency_s, self.transport.write, ANSWER)


def serve(port: int, latency_s: float) -> None:
    Connection.latency_s = latency_s

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(
            Connection, "127.0.0.1", port, reuse_port=True, backlog=2048
        )
        await server.serve_forever()

    asyncio.run(main())


def measure(proofs: int, asked: argparse.Namespace, port: int) -> dict[str, float]:
    """Judge a set in a process of its own, and its children."""
    with tempfile.TemporaryDirectory(prefix="pv-data-bench-", dir=asked.folder) as folder:
        write_set(Path(folder), proofs, asked.characters)
        command = [sys.executable, __file__, "--part", folder, "--port", str(port)]
        command += ["--workers", str(asked.workers), "--executor", asked.executor]
        command += ["--concurrency", str(asked.concurrency)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        # not by getrusage, whose peak begins with that of the process that starts another
        own, asking = 0.0, 0.0
        while process.poll() is None:
            now = memory(process.pid)
            own, asking = max(own, now[0]), max(asking, now[1])
            time.sleep(LOOK_S)
        if process.returncode:
            raise SystemExit(process.returncode)
        assert process.stdout
        assert sum(1 for _ in read_rows(Path(folder) / "labels", Label)) == proofs
        return {**json.loads(process.stdout.read().splitlines()[-1]), "own": own, "asking": asking}


def write_set(folder: Path, proofs: int, characters: int) -> None:
    problem = Problem(source="Bench", native_id="1", text="Prove that n + 0 = n.")
    write_part(folder / "problems" / "00-00000.parquet", Problem, [problem])
    filler = "Hence the claim follows by induction on n. " * (characters // 43)
    for first in range(0, proofs, 4096):
        rows = [
            Proof(problem_id=problem.id, source="Bench", method="proof", model="m", text=f"{n}. {filler}")
            for n in range(first, min(first + 4096, proofs))
        ]
        write_part(folder / "proofs" / f"00-{first // 4096:05d}.parquet", Proof, rows, group=ROWS)


def memory(pid: int) -> tuple[float, float]:
    """In MiB: of the process of the run, and of the largest of those that ask for it, 0 where it asks itself."""
    own, asking = 0, 0
    with contextlib.suppress(psutil.Error):
        own = psutil.Process(pid).memory_info().rss
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any(mark in " ".join(child.cmdline()) for mark in ASKING):
                    asking = max(asking, child.memory_info().rss)
    return own / 2**20, asking / 2**20


def judge(folder: Path, asked: argparse.Namespace) -> None:
    from pv_data.run.config import read_run
    from pv_data.run.judge import Judging
    from pv_data.run.local_executor import run_local

    seats = {"r1": 3, "mini": 1, "flash": 1}
    share = asked.concurrency // 5
    models = {
        name: {
            "endpoints": [{"url": f"http://127.0.0.1:{asked.port}/v1", "model": name}],
            "sampling": {"temperature": 0.6, "max_tokens": 1000},
            "limits": {"concurrency": share * votes + (asked.concurrency - 5 * share if name == "r1" else 0)},
        }
        for name, votes in seats.items()
    }
    config = read_run(
        {
            "run_dir": str(folder),
            "sources": [{"kind": "table", "path": "none"}],
            "models": models,
            "panel": [{"model": name, "votes": votes} for name, votes in seats.items()],
            "workers": asked.workers,
            "executor": asked.executor,
        }
    )
    job = Judging(run=folder, config=config)
    with contextlib.ExitStack() as started:
        execute, begin = run_local, time.perf_counter()
        if asked.executor == "ray":
            from pv_data.run.ray_executor import ray_started
            from pv_data.run.ray_executor import run_on_ray as execute

            started.enter_context(ray_started(asked.workers))
        start = time.perf_counter() - begin
        begin, cpu = time.perf_counter(), sum(os.times()[:4])
        execute(job, asked.workers)
        took, cpu = time.perf_counter() - begin, sum(os.times()[:4]) - cpu
    print(json.dumps({"start": start, "seconds": took, "cpu": cpu}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--proofs", type=int, default=20_904)
    parser.add_argument("--latency", type=float, default=0.3)
    parser.add_argument("--concurrency", type=int, default=512)
    parser.add_argument("--characters", type=int, default=3_000, help="of a proof")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--servers", type=int, default=1, help="processes that answer")
    parser.add_argument("--executor", choices=("local", "ray"), default="local")
    parser.add_argument("--folder", help="where the run's files go; a local disk")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        judge(Path(asked.part), asked)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    servers = [
        context.Process(target=serve, args=(port, asked.latency), daemon=True) for _ in range(asked.servers)
    ]
    for server in servers:
        server.start()
    time.sleep(2)
    small, whole = measure(asked.proofs // 10, asked, port), measure(asked.proofs, asked, port)
    ideal = asked.proofs * 5 * asked.latency / asked.concurrency
    # Ray's processes are not children of the one that measures.
    cpu = (
        f"{1000 * whole['cpu'] / asked.proofs / 5:.2f} ms of CPU each; " if asked.executor == "local" else ""
    )
    print(
        f"{os.cpu_count()} cores, {asked.executor}, {asked.workers} workers: {asked.proofs * 5:,} judgments in "
        f"{whole['seconds']:.1f} s, {whole['seconds'] / ideal:.2f} of the ideal {ideal:.1f} s, after a start of "
        f"{whole['start']:.1f} s; "
        f"{cpu}memory with a tenth of the proofs and with all: {small['own']:.0f} and {whole['own']:.0f} MiB, of the "
        f"largest that asks for it {small['asking']:.0f} and {whole['asking']:.0f} MiB"
    )
    for server in servers:
        server.terminate()


if __name__ == "__main__":
    main()
