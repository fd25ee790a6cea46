"""The cases, those that tell most first. A group is one process: its model is built once for all of its cases."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Case:
    """Rows of one batch, and how they are computed."""

    name: str
    rows: int = 12
    prompt: int = 500
    """Mean tokens; prompts vary by half of it, so that rows of equal responses are padded too."""
    response: int = 4096
    """Mean tokens, all equal unless `sigma` is given."""
    sigma: float | None = None
    """Of log-normal responses, cut at 8 means."""
    attention: str = "sdpa"
    """A name of transformers, or `unmasked` of pv_runs.attention."""
    packed: bool = False
    """`use_remove_padding`."""
    micro: int = 24576
    """Tokens of a micro-batch."""
    calls: int = 1
    parts: tuple[str, ...] = ("old", "ref", "update")
    mode: str = "seq-mean-token-mean"
    """`loss_agg_mode`."""
    profile: bool = False
    """Each part once more under torch's profiler; the kernels that take longest go to a file."""

    def lengths(self) -> list[tuple[int, int]]:
        """Prompt and response of each row; the same in every process."""
        dice = random.Random(0)
        pairs = []
        for _ in range(self.rows):
            prompt = dice.randint(self.prompt // 2, self.prompt * 3 // 2)
            drawn = (
                dice.lognormvariate(0, self.sigma) / 2.718281828 ** (self.sigma**2 / 2) if self.sigma else 1.0
            )
            pairs.append((prompt, max(8, round(self.response * min(drawn, 8)))))
        return pairs


@dataclass(frozen=True, kw_only=True)
class Group:
    name: str
    kind: str
    """`training`, `generation` or `trainer`."""
    shape: str
    seconds: int
    """About how long it takes on one H200."""
    cases: tuple[Case, ...] = ()
    held_out: bool = False
    overrides: tuple[str, ...] = ()
    """Of the run, beside those that every group has."""


ACTOR, REF = "actor_rollout_ref.actor.fsdp_config", "actor_rollout_ref.ref.fsdp_config"
BF16 = (f"{ACTOR}.model_dtype=bf16", f"{REF}.model_dtype=bf16")
FORWARD = ("old", "ref")

REASONS = (
    Case(name="4k padded", calls=2, profile=True),
    Case(name="4k padded, half micro-batches", micro=12288, parts=FORWARD),
    Case(name="4k padded, no mask", attention="unmasked"),
    Case(name="4k packed, varlen", attention="unmasked", packed=True),
    Case(name="mixed padded", rows=24, response=800, sigma=1.0, calls=1),
    Case(name="mixed packed, varlen", rows=24, response=800, sigma=1.0, attention="unmasked", packed=True),
    Case(name="4k packed, sdpa", packed=True, rows=6, parts=FORWARD),
    Case(name="4k packed, flex", attention="flex_attention", packed=True, calls=2),
)
SHORT = (
    Case(name="512 padded", rows=64, response=512, calls=2),
    Case(name="512 packed, varlen", rows=64, response=512, attention="unmasked", packed=True),
    Case(name="4k padded"),
    Case(name="4k packed, varlen", attention="unmasked", packed=True),
    Case(name="16k padded", rows=3, response=16000),
    Case(name="16k packed, varlen", rows=3, response=16000, attention="unmasked", packed=True),
)
LARGE = (
    Case(name="4k padded", rows=6, calls=2),
    Case(name="4k packed, varlen", rows=6, attention="unmasked", packed=True),
    Case(name="mixed packed, varlen", rows=24, response=800, sigma=1.0, attention="unmasked", packed=True),
    Case(name="16k packed, varlen", rows=2, response=16000, attention="unmasked", packed=True),
)
OVERHEAD = tuple(
    Case(name=f"2k padded, {mode}", rows=24, response=2048, calls=2, parts=("update",), mode=mode)
    for mode in ("token-mean", "balanced", "balanced", "token-mean")
)
DECODES = (
    Case(name="64 x 1k", rows=64, response=1024),
    Case(name="16 x 1k", rows=16, response=1024),
    Case(name="256 x 512", rows=256, response=512),
    Case(name="64 x 4k", rows=64, response=4096),
)

COLOCATED = ("trainer_mode=colocate_async",)

GROUPS = (
    Group(name="train 4B", kind="training", shape="4B", seconds=150, cases=REASONS),
    Group(name="train 8B bf16", kind="training", shape="8B", seconds=110, cases=LARGE, overrides=BF16),
    Group(name="train 0.6B", kind="training", shape="0.6B", seconds=60, cases=SHORT),
    Group(name="decode 4B", kind="generation", shape="4B", seconds=100, cases=DECODES),
    Group(
        name="train 1.7B", kind="training", shape="1.7B", seconds=80, held_out=True, cases=(*SHORT, *OVERHEAD)
    ),
    Group(name="decode 0.6B", kind="generation", shape="0.6B", seconds=70, cases=DECODES[:3]),
    Group(
        name="train 1.7B offloaded",
        kind="training",
        shape="1.7B",
        seconds=45,
        cases=(Case(name="4k padded", calls=2),),
        overrides=(f"{ACTOR}.param_offload=true", f"{ACTOR}.optimizer_offload=true"),
    ),
    Group(
        name="train 0.6B fsdp2",
        kind="training",
        shape="0.6B",
        seconds=35,
        cases=(Case(name="4k padded", calls=2),),
        overrides=(
            "actor_rollout_ref.actor.strategy=fsdp2",
            f"{ACTOR}.strategy=fsdp2",
            f"{REF}.strategy=fsdp2",
        ),
    ),
    Group(name="train 0.1B", kind="training", shape="0.1B", seconds=35, held_out=True, cases=SHORT[:3]),
    Group(
        name="train 0.6B unfused",
        kind="training",
        shape="0.6B",
        seconds=60,
        cases=(Case(name="512 padded", rows=32, response=512, calls=2),),
        overrides=("actor_rollout_ref.model.use_fused_kernels=false",),
    ),
    Group(name="decode 8B", kind="generation", shape="8B", seconds=120, held_out=True, cases=DECODES[:2]),
    Group(
        name="run 1.7B colocate_async",
        kind="trainer",
        shape="1.7B",
        seconds=240,
        held_out=True,
        cases=(Case(name="2k", rows=64, response=2048),),
        overrides=COLOCATED,
    ),
    Group(
        name="run 0.6B sync",
        kind="trainer",
        shape="0.6B",
        seconds=220,
        cases=(Case(name="2k", rows=64, response=2048),),
        overrides=("trainer_mode=sync",),
    ),
)

TINY = (
    Case(name="padded", rows=6, prompt=20, response=40, micro=200, calls=2, profile=True),
    Case(name="no mask", rows=6, prompt=20, response=40, micro=200, attention="unmasked"),
    Case(name="packed, sdpa", rows=6, prompt=20, response=40, micro=200, packed=True),
    Case(
        name="packed, unmasked", rows=6, prompt=20, response=40, micro=200, attention="unmasked", packed=True
    ),
    Case(name="mixed", rows=8, prompt=20, response=40, micro=400, sigma=1.0),
    Case(name="balanced", rows=8, prompt=20, response=40, micro=200, parts=("update",), mode="balanced"),
)
REHEARSAL = (
    Group(name="train tiny", kind="training", shape="tiny", seconds=60, cases=TINY),
    Group(
        name="run tiny",
        kind="trainer",
        shape="tiny",
        seconds=240,
        cases=(Case(name="short", rows=16, prompt=40, response=40, micro=2000),),
        overrides=COLOCATED,
    ),
)
"""On a CPU."""
