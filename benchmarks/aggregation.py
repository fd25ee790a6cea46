"""What does aggregation alone cost, forward and backward, beside verl's own?

One matrix of 480 responses x 16,000 tokens, lengths log-normal, on a GPU (or, smaller, on a CPU). Times are medians
over interleaved repetitions, so that all sides see the same clock; the ratio is of those medians. `eager` is what a
training step sees, launches from Python included; `device` replays a CUDA graph, so that the kernels alone are timed.
The floor is the time to read the losses once and to write their gradient once, at the bandwidth of a copy on the same
device.

    python benchmarks/aggregation.py                    # 480 x 16000 on the GPU
    python benchmarks/aggregation.py --rows 64 --tokens 2000
"""

from __future__ import annotations

import argparse
import inspect
import statistics
import time
from collections.abc import Callable

import torch
from verl.trainer.ppo import core_algos

from pv_rl.losses import resolve_mode, response_weights
from pv_rl.verl_adapter.aggregation import MicroBatch, in_use

STOCK = inspect.unwrap(core_algos.agg_loss)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=480)
    parser.add_argument("--tokens", type=int, default=16_000)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--mode", default="balanced")
    asked = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loss, mask, groups = step(asked.rows, asked.tokens, device)
    lengths = mask.sum(-1)
    mode = resolve_mode(asked.mode)
    weights = response_weights(mode, lengths.cpu(), groups).to(device)
    totals = {"batch_num_tokens": int(lengths.sum()), "global_batch_size": asked.rows}

    def ours() -> torch.Tensor:
        with in_use(MicroBatch(mode, weights, lengths, dp_size=1)):
            return core_algos.agg_loss(loss, mask, mode.spec, **totals)

    def stock(name: str) -> Callable[[], torch.Tensor]:
        return lambda: STOCK(loss, mask, name, **totals)

    sides = {mode.spec: ours, **{name: stock(name) for name in ("seq-mean-token-mean", "token-mean")}}
    floor = 2 * loss.numel() * loss.element_size() / bandwidth(loss)
    print(
        f"{describe(device)}; {asked.rows} x {asked.tokens}, {loss.dtype}, medians of {asked.repeats} interleaved"
    )
    print(f"floor (read the losses, write their gradient): {floor * 1e6:.0f} us")
    runs = {"eager": {name: eager(side, loss) for name, side in sides.items()}}
    if loss.is_cuda:
        runs["device"] = {name: graph(side, loss) for name, side in sides.items()}
    for kind, calls in runs.items():
        times = measure(calls, device, asked.repeats)
        for name, seconds in times.items():
            ratio = seconds / times["seq-mean-token-mean"]
            print(
                f"{kind:6} {name:21} {seconds * 1e6:8.0f} us  {ratio:5.2f} of seq-mean-token-mean  "
                f"{seconds / floor:6.2f} of the floor"
            )
    for name, side in sides.items():
        if loss.is_cuda:
            print(f"peak   {name:21} {peak(eager(side, loss), loss) / 2**20:8.1f} MiB above the inputs")


def step(rows: int, tokens: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
    """`loss_mat` (B, L) float32 that wants a gradient, its mask (B, L) bool, and 8 responses a prompt."""
    generator = torch.Generator().manual_seed(0)
    lengths = (torch.randn(rows, generator=generator) * 0.8).exp() * tokens / 6
    lengths = lengths.round().clamp(1, tokens)
    mask = (torch.arange(tokens)[None, :] < lengths[:, None]).to(device)
    loss = torch.randn(rows, tokens, generator=generator).to(device).requires_grad_()
    return loss, mask, [row // 8 for row in range(rows)]


def eager(side: Callable[[], torch.Tensor], loss: torch.Tensor) -> Callable[[], None]:
    """Forward and backward as a training step calls them."""

    def call() -> None:
        loss.grad = None
        side().backward()

    return call


def graph(side: Callable[[], torch.Tensor], loss: torch.Tensor) -> Callable[[], None]:
    """The same kernels without Python between them."""
    call, stream = eager(side, loss), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        call()
    return captured.replay


def measure(calls: dict[str, Callable[[], None]], device: torch.device, repeats: int) -> dict[str, float]:
    """Median seconds of each."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(repeats + 10):
        for name, call in calls.items():
            taken = stopwatch(call, device)
            if repeat >= 10:
                seconds[name].append(taken)
    return {name: statistics.median(values) for name, values in seconds.items()}


def stopwatch(call: Callable[[], None], device: torch.device) -> float:
    """Seconds; on a GPU between two events, so that the wait for the answer is not in it."""
    if device.type != "cuda":
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def peak(call: Callable[[], None], loss: torch.Tensor) -> int:
    """Bytes above what is held before the call, the gradient included."""
    loss.grad = None
    held = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    return torch.cuda.max_memory_allocated() - held


def bandwidth(like: torch.Tensor) -> float:
    """Bytes a second of a copy that is far larger than any cache: read and write both count."""
    source = torch.empty(2**28, dtype=torch.uint8, device=like.device)
    target = torch.empty_like(source)
    copy = measure({"copy": lambda: target.copy_(source)}, like.device, repeats=20)["copy"]
    return 2 * source.numel() / copy


def describe(device: torch.device) -> str:
    name = (
        torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    )
    return f"{name}, torch {torch.__version__}"


if __name__ == "__main__":
    main()
