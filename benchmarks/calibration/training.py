"""Measures verl's own training worker in one process: old log-probs, reference log-probs, update; seconds and memory.

`actor_rollout_ref` of the run's config is what the trainer would give to the worker; the batch is made. So a part is
timed without Ray, the transfer queue and the rollout engine, which the runs of the whole trainer add.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibration.batches import make_batch, make_data
from calibration.cases import Case, Group
from calibration.models import write_model
from calibration.plans import case_config, case_plan, phase_gib, seconds
from calibration.rows import Row, append

GIB = 2**30
ROLLOUT_PARTS = ("sleeping rollout engine", "rollout engine's share")
NOT_ALLOCATED = ("fragmentation", "CUDA context, NCCL", *ROLLOUT_PARTS)


class Meter:
    """Seconds, peak memory of the GPU by torch's allocator, and memory of the host. On a CPU the peaks are 0."""

    def __init__(self) -> None:
        import psutil
        import torch

        self.cuda = torch.cuda if torch.version.cuda else None
        self.host = psutil.virtual_memory
        self.peaks: dict[str, tuple[float, float]] = {}

    def reset(self) -> None:
        if self.cuda:
            self.cuda.synchronize()
            self.cuda.reset_peak_memory_stats()

    def peak(self, name: str) -> None:
        """Keep what was allocated and reserved at most since the last reset, in GiB, and reset."""
        if self.cuda:
            self.cuda.synchronize()
            self.peaks[name] = (
                self.cuda.max_memory_allocated() / GIB,
                self.cuda.max_memory_reserved() / GIB,
            )
            self.reset()
        else:
            self.peaks[name] = (0.0, 0.0)

    def outside_gib(self) -> float:
        """GiB of the GPU that torch's allocator does not know of: the context, NCCL."""
        if not self.cuda:
            return 0.0
        free, total = self.cuda.mem_get_info()
        return (total - free - self.cuda.memory_reserved()) / GIB

    def timed(self, name: str, call: Callable[[], Any]) -> tuple[float, Any]:
        self.reset()
        begin = time.perf_counter()
        result = call()
        if self.cuda:
            self.cuda.synchronize()
        taken = time.perf_counter() - begin
        self.peak(name)
        return taken, result

    def host_gib(self) -> float:
        return self.host().used / GIB


def measure(group: Group, out: Path, cpu: bool, until: float) -> None:
    """Measure the group's cases, and append each result to `out` at once.

    Args:
        group: what to measure.
        out: the CSV file; models go beside it.
        cpu: whether this is a rehearsal without a GPU.
        until: `time.time()` after which no new case is begun.
    """
    begin = time.perf_counter()
    if cpu:
        os.environ |= {"VERL_PLATFORM": "cpu", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    os.environ |= {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
    }
    os.environ["DIST_INIT_METHOD"] = f"file://{out.parent.resolve()}/rendezvous-{os.getpid()}"
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = (
        "expandable_segments:True"  # as verl sets it outside of generation
    )
    import torch
    import verl.workers.engine_workers as engine_workers

    meter = Meter()
    imported = time.perf_counter() - begin
    model = write_model(out.parent / "models" / group.shape, group.shape)
    first = case_config(group, group.cases[0], model, cpu)
    before = meter.host_gib()
    built: dict[str, Any] = {}
    times = {"import of verl": imported}
    hosts: dict[str, float] = {}
    for role in ("ref", "actor"):
        begin = time.perf_counter()
        built[role] = engine_workers.ActorRolloutRefWorker(first.actor_rollout_ref, role=role)
        built[role].init_model()
        times[f"building the {role} (random weights)"] = time.perf_counter() - begin
        hosts[role] = meter.host_gib() - before
    common = {"group": group.name, "shape": group.shape, "held_out": group.held_out}
    append(
        out,
        [
            Row(
                **common,
                case="-",
                part=name,
                call=1,
                predicted=None,
                measured=taken,
                detail={"host_gib": hosts},
            )
            for name, taken in times.items()
        ],
    )
    watched = watch(built, meter)
    for case in group.cases:
        if time.time() > until:
            print(f"{group.name}: out of time before {case.name}", flush=True)
            return
        try:
            config = case_config(group, case, model, cpu)
            rows = measure_case(case, config, built, meter, watched)
            append(out, [Row(**common, case=case.name, **row) for row in rows])
            if case.profile:
                vocabulary = case_plan(config).setup.model.vocab_size
                profile(
                    case,
                    config,
                    built,
                    vocabulary,
                    out.parent / f"{group.name.replace(' ', '-')}-profile.txt",
                )
        except Exception as error:  # noqa: BLE001 - the other cases can still be measured
            traceback.print_exc(file=sys.stdout)
            detail = {"error": f"{type(error).__name__}: {error}"[:300]}
            append(
                out,
                [
                    Row(
                        **common,
                        case=case.name,
                        part="failed",
                        call=1,
                        predicted=None,
                        measured=0.0,
                        detail=detail,
                    )
                ],
            )
            del error
            gc.collect()
            if torch.version.cuda:
                torch.cuda.empty_cache()


def watch(built: dict[str, Any], meter: Meter) -> list[tuple[int, int, int]]:
    """Rows, longest row and tokens of each micro-batch, from here on; and the peak before the optimizer's step."""
    micro_batches: list[tuple[int, int, int]] = []

    def watched(forward: Callable[..., Any]) -> Callable[..., Any]:
        def forward_step(micro_batch: Any, *arguments: Any, **options: Any) -> Any:
            lengths = micro_batch["input_ids"].offsets().diff()
            micro_batches.append((len(lengths), int(lengths.max()), int(lengths.sum())))
            return forward(micro_batch, *arguments, **options)

        return forward_step

    engines = {"actor": built["actor"].actor.engine, "ref": built["ref"].ref.engine}
    for engine in engines.values():
        engine.forward_step = watched(engine.forward_step)
    step = engines["actor"].optimizer_step

    def optimizer_step() -> Any:
        meter.peak("update")
        return step()

    engines["actor"].optimizer_step = optimizer_step
    return micro_batches


def measure_case(
    case: Case, config: Any, built: dict[str, Any], meter: Meter, watched: list[tuple[int, int, int]]
) -> list[dict[str, Any]]:
    """The rows of one case, without the columns that all cases share."""
    import torch
    from verl.workers.utils.padding import response_from_nested

    plan = case_plan(config)
    predicted = seconds(plan)
    configure(built, case, config)
    batch = make_batch(case, plan.setup.model.vocab_size)
    mask = batch["response_mask"]
    results: list[dict[str, Any]] = []
    operations = plan_operations(plan, case)
    for call in range(1, case.calls + 1):
        for part in case.parts:
            data = make_data(batch, part, case, config)
            watched.clear()
            name = "Adam's step" if part == "update" else part
            taken, output = meter.timed(name, functools.partial(compute, built, part, data))
            mean = None
            if part == "old":
                batch["old_log_probs"] = response_from_nested(output["log_probs"], mask)
                mean = round(float(batch["old_log_probs"].values().mean()), 4)
            detail = {
                "micro_batches": len(watched),
                "tokens": sum(one[2] for one in watched),
                "padded": sum(one[0] * one[1] for one in watched) if not case.packed else None,
                "most": max((one[2] if case.packed else one[0] * one[1]) for one in watched),
                "attention": case.attention,
                "packed": case.packed,
                "micro": case.micro,
                "operations": operations,
                "passes": 4 if part == "update" else 1,
                "mode": case.mode,
                "mean_log_prob": mean,
                "host_gib": round(meter.host_gib(), 2),
            }
            name = {"old": "old log-probs", "ref": "reference log-probs", "update": "update"}[part]
            expected = predicted.get(name)
            results.append(
                {"part": name, "call": call, "predicted": expected, "measured": taken, "detail": detail}
            )
            phases = ("update", "Adam's step") if part == "update" else (part,)
            for phase in phases:
                allocated, reserved = meter.peaks[phase]
                planned = "log-probs" if part != "update" else phase
                detail_gib = {
                    "outside_gib": round(meter.outside_gib(), 3),
                    "most": detail["most"],
                    "attention": case.attention,
                }
                for kind, gib, without in (
                    ("allocated", allocated, NOT_ALLOCATED),
                    ("with fragments and context", reserved + meter.outside_gib(), ROLLOUT_PARTS),
                ):
                    results.append(
                        {
                            "part": f"memory: {name if part != 'update' else phase}, {kind}",
                            "call": call,
                            "predicted": phase_gib(plan, planned, without),
                            "measured": gib,
                            "detail": dict(detail_gib),
                        }
                    )
            del output, data
    gc.collect()
    if torch.version.cuda:
        torch.cuda.empty_cache()
    return results


def compute(built: dict[str, Any], part: str, data: Any) -> Any:
    method = {"old": "compute_log_prob", "ref": "compute_ref_log_prob", "update": "update_actor"}[part]
    return getattr(built["ref" if part == "ref" else "actor"], method)(data)


def profile(case: Case, config: Any, built: dict[str, Any], vocabulary: int, file: Path) -> None:
    """Append to `file`, for each part, the kernels that take longest."""
    import torch
    from torch.profiler import ProfilerActivity

    activity = ProfilerActivity.CUDA if torch.version.cuda else ProfilerActivity.CPU
    order = "self_cuda_time_total" if torch.version.cuda else "self_cpu_time_total"
    for part in case.parts:
        data = make_data(make_batch(case, vocabulary), part, case, config)
        with torch.profiler.profile(activities=[activity]) as profiler:
            compute(built, part, data)
        table = profiler.key_averages().table(sort_by=order, row_limit=30, max_name_column_width=110)
        with file.open("a") as stream:
            stream.write(f"{case.name}, {part}\n{table}\n")


def plan_operations(plan: Any, case: Case) -> dict[str, float]:
    """Operations of one forward over the rows as they are: of matrices a token, and of attention over causal pairs."""
    model = plan.setup.model
    lengths = [sum(pair) for pair in case.lengths()]
    each = 2 * model.num_hidden_layers * model.query_width
    return {
        "a_token": 2 * model.matmul_parameters,
        "attention": each * sum(length**2 for length in lengths),
        "a_padded_square": each,
    }


def configure(built: dict[str, Any], case: Case, config: Any) -> None:
    """What differs between cases of one group; all of it is read at each call."""
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.utils.losses import ppo_loss

    for role, engine in (("actor", built["actor"].actor), ("ref", built["ref"].ref)):
        engine.engine.module.config._attn_implementation = case.attention
        engine.engine_config.use_dynamic_bsz = True
        engine.engine_config.max_token_len_per_gpu = case.micro
        engine.engine_config.infer_max_token_len_per_gpu = case.micro
        assert role in built
    config.actor_rollout_ref.actor.loss_agg_mode = case.mode
    settings = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    built["actor"].set_loss_fn(functools.partial(ppo_loss, config=settings))
