"""Tables of a result file beside the plan as it is now, and the constants that the file gives for the plan."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
from calibration.cases import GROUPS, Case, Group
from calibration.models import write_model
from calibration.plans import ROLLOUT, SHARE, case_config, phase_gib, seconds
from calibration.rows import Row, read
from calibration.training import NOT_ALLOCATED, ROLLOUT_PARTS

from pv_runs.plan import Plan, make_plan
from pv_runs.plan.step_time import forward_work

TRAINING = ("old log-probs", "reference log-probs", "update")
MEMORY = "memory: update, allocated"


def table(path: Path) -> str:
    """Markdown: a line a case, `predicted measured ratio` of each part; calls after the first of their kind."""
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for row in replanned(path):
        where = row.group.split(" ", 1)[1] + " (held out)" * row.held_out, row.case
        found[where][row.part] = f"{row.predicted:.3g} {row.measured:.3g} **{row.ratio:.2f}**"
    lines = [
        "| shape | case | old log-probs, s | reference log-probs, s | update, s | memory of an update, GiB |",
        "|---|---|---|---|---|---|",
    ]
    rest = []
    for (shape, case), parts in found.items():
        if "update" in parts or "old log-probs" in parts:
            cells = (parts.get(name, "") for name in (*TRAINING, MEMORY))
            lines.append(f"| {shape} | {case} | {' | '.join(cells)} |")
        rest += [f"| {shape} | {case} | {part} | {said} |" for part, said in parts.items() if is_other(part)]
    return "\n".join(
        [*lines, "", "| shape | case | part | predicted measured ratio |", "|---|---|---|---|", *rest]
    )


def is_other(part: str) -> bool:
    return part not in TRAINING and not part.startswith("memory: ")


def fit(path: Path) -> str:
    """Constants by least squares of relative errors over the cases that are not held out, then ratios of each part."""
    terms, names = [], ("1 / train_mfu", "1 / attention_mfu", "1 / masked_attention_mfu", "layer_token_us")
    rows = list(replanned(path))
    for row in rows:
        if row.part in ("old log-probs", "update") and not row.held_out and "offloaded" not in row.group:
            setup = plan_of(*case_of(row)).setup
            work, peak = forward_work(setup, row.detail["micro"]), setup.cluster.gpu.bf16_tflops * 1e12
            each = work.tokens * setup.model.num_hidden_layers / 1e6
            flash, masked = work.attention * (not work.masked), work.attention * work.masked
            found = (work.matrices / peak, flash / peak, masked / peak, each)
            terms.append([row.detail["passes"] * one / row.measured for one in found])
    solved = np.linalg.lstsq(np.array(terms), np.ones(len(terms)), rcond=None)[0]
    lines = [
        f"{name.removeprefix('1 / ')}: {1 / value if name.startswith('1') else value:.3g}"
        for name, value in zip(names, solved, strict=True)
    ]
    ratios: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for row in rows:
        if row.ratio:
            ratios[row.part, row.held_out].append(row.ratio)
    lines.append(f"of {len(terms)} measurements; measured / predicted by the plan as it is now:")
    for (part, held_out), values in sorted(ratios.items()):
        lines.append(
            f"    {part}{' (held out)' if held_out else ''}: median {median(values):.3g}, "
            f"{min(values):.3g} to {max(values):.3g} of {len(values)}"
        )
    return "\n".join(lines)


def replanned(path: Path) -> Iterator[Row]:
    """The last call of each part of each case, predicted by the plan as it is now.

    What the first call of the reference log-probs takes longer than the second is a row of its own. Prompts and
    decoding of vLLM are one row where the two calls whose difference is the decoding both computed prompts.
    """
    rows = [row for row in read(path) if row.part != "failed"]
    first = {(row.group, row.case, row.part): row.measured for row in rows if row.call == 1}
    for key, row in {(row.group, row.case, row.part): row for row in rows}.items():
        where = case_of(row)
        if where is None:
            continue
        plan = plan_of(*where)
        if (
            row.part == "reference log-probs"
            and row.call > 1
            and plan.time.first
            and first[key] > 2 * row.measured
        ):
            yield replace(
                row,
                part=plan.time.first.name,
                measured=first[key] - row.measured,
                predicted=plan.time.first.seconds,
            )
        if row.part == "KV cache, tokens":
            yield replace(row, predicted=plan.memory.kv_cache.tokens)
        elif row.part.startswith("memory: "):
            name, kind = row.part.removeprefix("memory: ").split(", ")
            without = NOT_ALLOCATED if kind == "allocated" else ROLLOUT_PARTS
            phase = "log-probs" if name.endswith("log-probs") else name
            yield replace(row, predicted=phase_gib(plan, phase, without))
        elif row.part == "decoding" and first[row.group, row.case, "prompts"] > 1:
            both = row.measured + first[row.group, row.case, "prompts"]
            yield replace(
                row,
                part="prompts and decoding",
                measured=both,
                predicted=sum(one.seconds for one in plan.time.generation),
            )
        elif row.part != "prompts":
            yield replace(row, predicted=seconds(plan).get(row.part))


def case_of(row: Row) -> tuple[Group, Case] | None:
    for group in GROUPS:
        if group.name == row.group and group.kind != "trainer":
            named = [case for case in group.cases if case.name == row.case]
            return (group, named[0]) if named else (group, group.cases[0]) if "KV" in row.part else None
    return None


@cache
def plan_of(group: Group, case: Case) -> Plan:
    if group.kind == "generation":
        group = replace(group, overrides=(*group.overrides, f"{ROLLOUT}.gpu_memory_utilization={SHARE}"))
    with tempfile.TemporaryDirectory() as folder:
        return make_plan(case_config(group, case, write_model(Path(folder), group.shape)))
