"""Measures vLLM alone, set up as verl does: start, prompts, decoding, room for keys and values, memory while asleep."""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibration.cases import Case, Group
from calibration.models import write_model
from calibration.plans import ROLLOUT, SHARE, case_config, case_plan, seconds
from calibration.rows import Row, append

GRAPHS = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": [1, 16, 64, 128, 256]}
"""CUDA graphs without compilation, as a run gets them by `engine_kwargs.vllm.compilation_config`."""


def measure(group: Group, out: Path, until: float) -> None:
    """Start one engine, then time each case; `until` is the `time.time()` after which no new case is begun."""
    from vllm import LLM, SamplingParams

    model = write_model(out.parent / "models" / group.shape, group.shape)
    group = replace(group, overrides=(*group.overrides, f"{ROLLOUT}.gpu_memory_utilization={SHARE}"))
    longest = max(sum(pair) for case in group.cases for pair in case.lengths())
    common = {"group": group.name, "shape": group.shape, "held_out": group.held_out, "call": 1}
    begin, before = time.perf_counter(), used_gib()
    engine = LLM(
        model=str(model),
        load_format="dummy",
        dtype="bfloat16",
        gpu_memory_utilization=SHARE,
        max_model_len=longest + 8,
        max_num_seqs=256,
        max_num_batched_tokens=8192,
        enable_sleep_mode=True,
        enable_prefix_caching=False,  # cases begin with the same prompts
        skip_tokenizer_init=True,
        compilation_config=GRAPHS,
        seed=0,
    )
    started = Row(
        **common, case="-", part="start of vLLM", predicted=None, measured=time.perf_counter() - begin
    )
    append(out, [started])
    plan = case_plan(case_config(group, group.cases[0], model))
    try:
        cache = engine.llm_engine.vllm_config.cache_config
        tokens = cache.num_gpu_blocks * cache.block_size
        append(
            out,
            [
                Row(
                    **common,
                    case="-",
                    part="KV cache, tokens",
                    predicted=plan.memory.kv_cache.tokens,
                    measured=tokens,
                )
            ],
        )
    except (AttributeError, TypeError) as error:
        print(f"the size of the KV cache is not known: {error}", flush=True)

    def generate(case: Case, most: int, top_p: float = 0.9) -> float:
        dice = random.Random(most)
        vocabulary = plan.setup.model.vocab_size
        prompts: Any = [
            {"prompt_token_ids": [dice.randrange(300, vocabulary) for _ in range(prompt)]}
            for prompt, _ in case.lengths()
        ]
        settings = SamplingParams(
            max_tokens=most, ignore_eos=True, temperature=0.6, top_p=top_p, detokenize=False
        )
        begin = time.perf_counter()
        engine.generate(prompts, settings, use_tqdm=False)
        return time.perf_counter() - begin

    generate(group.cases[0], 8)  # kernels that are compiled at first use
    for case in group.cases:
        if time.time() > until:
            return
        predicted = seconds(case_plan(case_config(group, case, model)))
        first = generate(case, 1)
        whole = generate(case, case.response)
        detail = {"rows": case.rows, "prompt": case.prompt, "response": case.response}
        rows = [
            Row(
                **common,
                case=case.name,
                part="prompts",
                predicted=predicted["prompts"],
                measured=first,
                detail=detail,
            ),
            Row(
                **common,
                case=case.name,
                part="decoding",
                predicted=predicted["decoding"],
                measured=whole - first,
                detail={**detail, "step_ms": 1000 * (whole - first) / (case.response - 1)},
            ),
        ]
        append(out, rows)
    case = group.cases[0]
    plain = generate(case, case.response, top_p=1.0)
    append(
        out,
        [
            Row(
                **common,
                case=f"{case.name}, top_p 1",
                part="prompts and decoding",
                predicted=None,
                measured=plain,
            )
        ],
    )
    begin = time.perf_counter()
    engine.sleep(level=2)
    slept = time.perf_counter() - begin
    assumed = plan.setup.assumed.sleeping_rollout_gib
    begin, asleep = time.perf_counter(), used_gib() - before
    engine.wake_up()
    woken = time.perf_counter() - begin
    append(
        out,
        [
            Row(
                **common, case="-", part="memory: sleeping rollout engine", predicted=assumed, measured=asleep
            ),
            Row(**common, case="-", part="falling asleep", predicted=None, measured=slept),
            Row(**common, case="-", part="waking up", predicted=None, measured=woken),
        ],
    )


def used_gib() -> float:
    """GiB of the first GPU that are taken, by whatever process."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024
