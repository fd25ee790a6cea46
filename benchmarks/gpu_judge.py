"""What does a judge on a GPU of one's own take, and how often can its answer be used?

    python benchmarks/gpu_judge.py --write-traces traces.jsonl             # where the real inputs are
    python benchmarks/gpu_judge.py --model FOLDER --traces traces.jsonl    # where vLLM is: starts it, asks, stops it

Asks with the settings of hydra_configs/judge/vllm_local.yaml, at several loads: so many questions are under way at all
times. Then without the schema, at the largest load; then through `pv-rl score`, as a user would. No trace is asked
about twice, so that the server has only the instructions in its prefix cache. Prints Markdown.

Against a server that runs already, for example `transformers serve`:

    python benchmarks/gpu_judge.py --model MODEL --traces traces.jsonl --url http://127.0.0.1:8000/v1 \\
      --judge transformers_local --loads 1 --rows-a-load 8 --score-rows 8
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from pv_judge.answer import JudgeFailure, Usage
from pv_judge.client import JudgeClient
from pv_judge.config import read_config
from pv_judge.fluency import FluencyPrompt, parse_fluency
from pv_judge.metrics import percentile

ROOT = Path(__file__).resolve().parents[1]
PORT = 8311
SOURCES = ("mrgsm8k", "opc", "opc_issues", "dsmathv2", "processbench", "prmbench", "olympiadbench")
LONGEST = 9_000  # characters of a trace: with the instructions it fits into a context of 8,192 tokens
VLLM = {"VLLM_USE_FLASHINFER_SAMPLER": "0", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
GRAMMAR = '{"backend": "xgrammar", "disable_any_whitespace": true}'


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question's end."""

    seconds: float
    failure: str | None
    fluent: bool | None
    usage: Usage


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write-traces", type=Path, help="write this file and end")
    parser.add_argument("--sources", nargs="+", default=SOURCES, help="folders of the real inputs to write")
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--model", help="a folder or a name, as the server knows it")
    parser.add_argument(
        "--url", help="a server that runs already, up to and with /v1; vLLM is started if none"
    )
    parser.add_argument("--judge", default="vllm_local", help="a file of hydra_configs/judge")
    parser.add_argument("--loads", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--rows-a-load", type=int, help="instead of 24 and three times the load")
    parser.add_argument("--score-rows", type=int, default=256)
    parser.add_argument("--log", type=Path, default=Path("vllm.log"))
    args = parser.parse_args()
    if args.write_traces:
        write_traces(args.write_traces, args.sources)
        return
    if not args.traces or not args.model:
        parser.error("--traces and --model are needed")
    with served(args.model, args.url, args.log) as url:
        measure(args, url)


def write_traces(path: Path, sources: Sequence[str]) -> None:
    """Real traces that no rule hits, in a random order that is always the same."""
    sys.path.append(str(ROOT / "benchmarks"))
    from traces.real import real_traces

    from pv_rl.rewards.degeneration import find_anomalies

    fit = [one for one in real_traces() if one.source in sources and len(one.text) <= LONGEST]
    traces = [one for one in fit if not find_anomalies(one.text)]
    random.Random(0).shuffle(traces)
    rows = ({"uid": one.name, "output": one.text, "label": True} for one in traces)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    say(f"{len(traces)} traces")


@contextmanager
def served(model: str, url: str | None, log: Path) -> Iterator[str]:
    """The URL of a server; one that is started here ends here."""
    if url is not None:
        yield url.rstrip("/")
        return
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model]
    command += ["--host", "127.0.0.1", "--port", str(PORT), "--enforce-eager", "--max-model-len", "8192"]
    command += ["--gpu-memory-utilization", "0.5", "--structured-outputs-config", GRAMMAR]
    say("    " + " ".join(f"{name}={value}" for name, value in VLLM.items()) + f" {shlex.join(command)}")
    begin = time.perf_counter()
    with log.open("wb") as file:
        server = subprocess.Popen(command, env=os.environ | VLLM, stdout=file, stderr=subprocess.STDOUT)
    try:
        while not healthy(f"http://127.0.0.1:{PORT}/health"):
            if server.poll() is not None or time.perf_counter() - begin > 480:
                raise SystemExit(f"vLLM did not come up:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(1)
        say(f"vLLM answered after {time.perf_counter() - begin:.0f} s.")
        yield f"http://127.0.0.1:{PORT}/v1"
    finally:
        server.terminate()
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def measure(args: argparse.Namespace, url: str) -> None:
    lines = args.traces.read_text(encoding="utf-8").splitlines()
    fresh = iter(lines)
    settings = judge_settings(args.judge, url, args.model)
    bare = json.loads(json.dumps(settings))
    bare["endpoints"][0].pop("extra_body", None)
    sides = [("as configured", settings, load) for load in args.loads]
    if bare != settings:
        sides.append(("without the schema", bare, max(args.loads)))
    ask([json.loads(next(fresh))["output"]], settings, 1)  # the first question pays for what is set up lazily
    say(f"\n{machine()}; {args.model} by {url}\n")
    say(
        "| | at once | traces | traces/s | p50 s | p95 s | usable | called fluent | tokens in, out | failures |"
    )
    say("|---|---|---|---|---|---|---|---|---|---|")
    for name, side, load in sides:
        traces = [json.loads(line)["output"] for line in take(fresh, args.rows_a_load or 24 + 3 * load)]
        begin = time.perf_counter()
        asked = ask(traces, side, load)
        say(row(name, load, asked, time.perf_counter() - begin))
    score(take(fresh, args.score_rows), settings)


def judge_settings(name: str, url: str, model: str) -> dict[str, Any]:
    """The settings of a file of hydra_configs/judge, for this server and without a cache."""
    os.environ.update(PV_RL_JUDGE_URL=url, PV_RL_JUDGE_MODEL=model)
    config = OmegaConf.load(ROOT / "hydra_configs" / "judge" / f"{name}.yaml")
    OmegaConf.update(config, "cache", None)
    settings = OmegaConf.to_container(config, resolve=True)
    assert isinstance(settings, dict)
    return {str(key): value for key, value in settings.items()}


def take(lines: Iterator[str], count: int) -> list[str]:
    taken = [line for line, _ in zip(lines, range(count), strict=False)]
    if len(taken) < count:
        raise SystemExit("--traces has too few rows for --loads, --rows-a-load and --score-rows")
    return taken


def ask(traces: Sequence[str], settings: dict[str, Any], load: int) -> list[Asked]:
    """Ask about each trace once, `load` at a time."""
    config = read_config({**settings, "limits": {"concurrency": load}, "retries": {"attempts": 1}})
    prompt = FluencyPrompt.load()

    async def all_of_them() -> list[Asked]:
        client, left, asked = JudgeClient(config), iter(traces), []

        async def one_after_the_other() -> None:
            for trace in left:
                begin = time.perf_counter()
                try:
                    answer = await client.ask(prompt.messages(trace), parse_fluency)
                    failure, fluent, usage = None, answer.value.fluent, answer.usage
                except JudgeFailure as error:
                    failure, fluent, usage = error.kind, None, error.usage
                seconds = time.perf_counter() - begin
                asked.append(Asked(seconds=seconds, failure=failure, fluent=fluent, usage=usage))

        try:
            await asyncio.gather(*(one_after_the_other() for _ in range(load)))
        finally:
            await client.aclose()
        return asked

    return asyncio.run(all_of_them())


def row(name: str, load: int, asked: Sequence[Asked], seconds: float) -> str:
    times = [one.seconds for one in asked]
    usable = [one for one in asked if one.failure is None]
    failures = Counter(one.failure for one in asked if one.failure)
    cells = [name, load, len(asked), f"{len(asked) / seconds:.3g}", f"{percentile(times, 0.5):.3g}"]
    cells += [f"{percentile(times, 0.95):.3g}", f"{len(usable) / len(asked):.1%}"]
    cells += [f"{sum(one.fluent is True for one in usable)} of {len(usable)}"]
    tokens = [(one.usage.prompt_tokens, one.usage.completion_tokens) for one in asked]
    cells += [", ".join(f"{statistics.mean(part):.0f}" for part in zip(*tokens, strict=True))]
    cells += [", ".join(f"{kind} {count}" for kind, count in failures.most_common()) or "none"]
    return "| " + " | ".join(map(str, cells)) + " |"


def score(lines: Sequence[str], settings: dict[str, Any]) -> None:
    """The same through the command of a user; its output."""
    with tempfile.TemporaryDirectory() as folder:
        rows, options = Path(folder, "rows.jsonl"), Path(folder, "options.yaml")
        rows.write_text("\n".join(lines) + "\n", encoding="utf-8")
        options.write_text(OmegaConf.to_yaml({"judge": settings, "ledger": f"{folder}/ledger"}))
        command = ["-m", "pv_rl.cli", "score", "--reward", "verdict_fluency", "--parquet", str(rows)]
        command += ["--options", str(options)]
        say(f"\n    python {shlex.join(command)}\n")
        done = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True)
    say("\n".join(f"    {line.rstrip()}" for line in done.stdout.splitlines() if line.strip()))


def machine() -> str:
    smi = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        gpu = subprocess.run(smi, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        gpu = "no GPU"
    return f"{time.strftime('%Y-%m-%d')}, {gpu}, {os.cpu_count()} cores, Python {platform.python_version()}"


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
