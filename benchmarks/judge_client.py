"""How many questions a second can one core ask, by `JudgeClient` and by the `openai` and `litellm` clients?

All ask the same server, which answers any request at once with the same completion, over HTTP/1.1, 64 at a time. The
others keep their connections; `JudgeClient` opens one for each question. The server has one core, the asking process
another. Each side is a process of its own that imports only its client; the sides take turns, each round in an order of
its own, so that one works while the others sleep. A ratio is of two sides of the same round: above 1, `JudgeClient` is
the faster. `CPU` is the ratio of the CPU seconds of the asking process, which other work on the machine disturbs least.
`JudgeClient` keeps all its guarantees: limits, breaker, budget in a spend file, deadline, total timeout, bounded
answers. The other two have few of these, and their retries are switched off. The side `unbooked` is `JudgeClient`
without the spend file; `--sides pv-rl unbooked` runs without the other clients.

litellm pins versions of what others need, so the clients have an environment of their own:

    python -m venv /tmp/clients
    /tmp/clients/bin/pip install openai litellm "httpx[http2]" pydantic
    PYTHONPATH=src:plugins/pv-judge/src /tmp/clients/bin/python benchmarks/judge_client.py
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

SIDES = ("pv-rl", "unbooked", "openai", "litellm")
CONCURRENCY = 64
CONTENT = json.dumps({"fluent": True, "anomalies": [], "confidence": 1.0})
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "judge",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": CONTENT},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 2000, "completion_tokens": 20, "total_tokens": 2020},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long a side asks in a round")
    parser.add_argument("--characters", type=int, nargs="+", default=[8_000, 60_000], help="of a prompt")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--part", help=argparse.SUPPRESS)  # which part a child process plays
    parser.add_argument("--url", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part == "server":
        asyncio.run(serve())
    elif asked.part:
        asyncio.run(work(asked.part, asked.url))
    else:
        compare(asked.sides, asked.rounds, asked.seconds, asked.characters)


def compare(names: list[str], rounds: int, seconds: float, sizes: list[int]) -> None:
    print(machine())
    server = child("server")
    url = server.stdout.readline().strip()
    sides = {side: child(side, url) for side in names}
    try:
        for size in sizes:
            numbers = {side: round(seconds * ask(sides[side], size, 256)["rate"]) for side in names}
            results = {side: [] for side in names}
            for _ in range(rounds):
                for side in random.sample(names, len(names)):
                    results[side].append(ask(sides[side], size, numbers[side]))
            report(size, results)
    finally:
        for process in (server, *sides.values()):
            process.kill()


def report(size: int, results: dict[str, list[dict[str, float]]]) -> None:
    print(f"\nprompts of {size:,} characters, {CONCURRENCY} at a time, {len(results['pv-rl'])} rounds")
    for side, measured in results.items():
        rate = statistics.median(one["rate"] for one in measured)
        cpu = statistics.median(one["cpu"] for one in measured)
        line = f"{side:8} {rate:7.0f} questions/s, {1e6 * cpu:6.0f} us of CPU each"
        if side != "pv-rl":
            pairs = list(zip(results["pv-rl"], measured, strict=True))
            wall = interval([ours["rate"] / theirs["rate"] for ours, theirs in pairs])
            cpu_ratio = interval([theirs["cpu"] / ours["cpu"] for ours, theirs in pairs])
            line += f"; pv-rl is {wall} times as fast, by CPU {cpu_ratio}"
        print(line)


def interval(ratios: list[float]) -> str:
    """The median, and where it lies with 95 % by bootstrap."""
    rng = random.Random(0)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(4000))
    return f"{statistics.median(ratios):.2f} ({medians[100]:.2f} to {medians[3899]:.2f})"


def child(part: str, url: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--part", part, "--url", url]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(process: subprocess.Popen[str], size: int, number: int) -> dict[str, float]:
    process.stdin.write(json.dumps([size, number]) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def pin(core: int) -> None:
    """Keep this process on one core, where the system can."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


async def work(side: str, url: str) -> None:
    """Read how much to ask, ask it, write how long it took."""
    pin(0)
    client = {"pv-rl": ours, "unbooked": unbooked, "openai": openai, "litellm": litellm}[side](url)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        size, number = json.loads(line)
        text = "We check the claim step by step, and find x^2 >= 0. " * (size // 51 + 1)
        prompts = [f"{place} {text}"[:size] for place in range(number)]
        wall, cpu = time.perf_counter(), time.process_time()
        await drive(client, prompts)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps({"rate": number / wall, "cpu": cpu / number}), flush=True)


async def drive(client, prompts: list[str]) -> None:
    """Ask all, 64 at a time."""
    left = iter(prompts)

    async def lane() -> None:
        for prompt in left:
            text = await client([{"role": "user", "content": prompt}])
            assert text == CONTENT

    await asyncio.gather(*(lane() for _ in range(CONCURRENCY)))


def ours(url: str, booked: bool = True):
    from pv_judge.client import JudgeClient
    from pv_judge.config import Budget, Endpoint, JudgeConfig, Limits, Price
    from pv_judge.spend_file import SpendFile

    config = JudgeConfig(
        endpoints=(Endpoint(url=url, model="judge"),),
        limits=Limits(concurrency=CONCURRENCY),
        budget=Budget(usd_per_run=1e9),
        prices={"judge": Price(input=0.28, output=0.42)},
    )
    client = JudgeClient(config)
    if booked:
        SpendFile(tempfile.mkdtemp(prefix="judge_client_"), client.budget)

    async def ask(messages):
        return (await client.ask(messages)).text

    return ask


def unbooked(url: str):
    return ours(url, booked=False)


def openai(url: str):
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=90)

    async def ask(messages):
        answer = await client.chat.completions.create(
            model="judge",
            messages=messages,
            temperature=0.0,
            max_tokens=400,
            response_format={"type": "json_object"},
        )
        return answer.choices[0].message.content

    return ask


def litellm(url: str):
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network for prices
    import litellm

    async def ask(messages):
        answer = await litellm.acompletion(
            model="openai/judge",
            api_base=url,
            api_key="none",
            messages=messages,
            temperature=0.0,
            max_tokens=400,
            response_format={"type": "json_object"},
            max_retries=0,
            timeout=90,
        )
        return answer.choices[0].message.content

    return ask


class Canned(asyncio.Protocol):
    """Answers each request with the same bytes as soon as its body is there."""

    body = json.dumps(ANSWER).encode()
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )

    def __init__(self) -> None:
        self.head, self.missing = b"", 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.missing == 0:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            lines = self.head[:end].lower().split(b"\r\n")
            length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
            self.missing, data, self.head = length, self.head[end + 4 :], b""
        self.missing -= len(data)
        if self.missing == 0:
            self.transport.write(self.answer)


async def serve() -> None:
    """Serve until the process is killed; print the URL."""
    pin(1)
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


def machine() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    models = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
    versions = []
    for name in ("openai", "httpx2", "litellm", "aiohttp", "httpx", "httpcore"):
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    name = models[0].partition(":")[2].strip() if models else platform.processor()
    return f"{name}, {len(models)} cores, Python {platform.python_version()}; {', '.join(versions)}"


if __name__ == "__main__":
    main()
