"""Is the gradient the paper's, however the step is cut? Runs the fixed grid and writes docs/internals/exactness.md.

python benchmarks/exactness.py [--out FILE] [--family NAME | --trainers]

`--trainers` measures the other trainers alone and writes their section of the page.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "plugins" / "pv-trainers" / "tests" / "support"))

from grid.cases import Case
from grid.compare import TOLERANCE, Grid
from grid.fixed import fixed_grid
from trainer_bench import Report, driver_names, measure_drivers
from trainer_cases import CUTS
from trainer_grid import OURS

from pv_judge.files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
STOCK = {
    "token-mean": {"spec": "token-mean"},
    "seq-mean-token-mean": {"spec": "seq-mean-token-mean"},
}

STOCK_DIFFERS = 1e-2
"""Relative error from which a mode of verl's own counts as another formula."""

PAGE = """# Exactness: one gradient, however the step is cut

*Written by `benchmarks/exactness.py`; do not edit. Measured {date} on {machine}, started at commit {commit},
with {versions}; {minutes:.0f} minutes.*

**Question:** does verl with pv-rl compute the gradient of the formula, however a step is cut into micro-batches,
mini-batches and ranks? **Answer:** yes. In {count} cases the worst relative error is
{worst_single} in float32 (bound in CI: {bound_single:.0e}) and {worst_double} in float64 (bound:
{bound_double:.0e}).

<!-- not run: takes minutes -->

    .venv/bin/python benchmarks/exactness.py             # --trainers: the section "Every trainer" alone

{table}

Worst errors in float32. The last two columns are verl's own modes, against 1/T and 1/(N |o_i|) over the rows
that count: verl also counts padding rows, in `global_batch_size`, and abstained rows, in `loss_mask`.
[Conversion](../concepts/conversion.md) measures other modes and trainers.

{trainers}

## Method

**Measured:** the gradient that verl's actor worker (FSDP2, gloo, real processes) passes to its optimizer, before
clipping, in steps that verl's trainer methods prepare. A dictionary replaces TransferQueue, and log-probs of the
old and the reference policy are drawn.

**Expected:** `tests/support/grid/oracle.py`, which imports neither verl nor pv-rl: the same model in float64, one
row at a time, weights as plain loops.

**Error:** `||measured - expected|| / ||expected||` of the worst update. Advantages, log-probs and
`rollout_is_weights` are always float32.

**Limits:** the model is a GPT-2 of {parameters} parameters, because Qwen and Llama of transformers compute
their norms in float32. Other models were not measured. CI runs a part of this grid, and requires an error above
1e-2 if the aggregation divides by a micro-batch's own tokens."""


TRAINERS = """## Every trainer

*Measured {date} on {machine}, started at commit {commit}, with
{versions}; {minutes:.0f} minutes.*

pv-rl in verl and pv-trainers in the others, with {modes}.
Each trainer's own functions compute the gradients on a CPU in float32, for {cuts} cuts of two steps each:
{count} cases, worst {worst} (bound in the tests: {bound:.0e}).

{table}"""


@dataclass
class Family:
    """Worst errors of the cases so far."""

    cases: int = 0
    ours: dict[str, float] = field(default_factory=dict)
    stock: dict[str, float] = field(default_factory=dict)


def measure(grid: Grid, cases: list[Case]) -> dict[str, Family]:
    families: dict[str, Family] = {}
    measured: dict[tuple[Case, str], float] = {}
    for number, case in enumerate(cases, 1):
        family = families.setdefault(case.family, Family())
        family.cases += 1
        for dtype in TOLERANCE:
            _worst(family.ours, dtype, grid.error(case, dtype))
        for column, settings in STOCK.items():
            key = (replace(case, name="", **settings), column)  # cases that differ in our mode alone share it
            if key not in measured:
                measured[key] = grid.error(key[0])
            _worst(family.stock, column, measured[key])
        errors = " ".join(f"{dtype} {family.ours[dtype]:.1e}" for dtype in TOLERANCE)
        sys.stderr.write(f"{number}/{len(cases)} {case}: worst of the family so far {errors}\n")
    return families


def _worst(errors: dict[str, float], column: str, error: float) -> None:
    errors[column] = max(error, errors.get(column, 0.0))


def table(families: dict[str, Family]) -> str:
    """Worst errors in float32: a line for the families in which the same modes of verl's own are right."""
    lines = [
        "| " + " | ".join(["families (cases)", "pv-rl", *STOCK]) + " |",
        "|---|" + "---:|" * (1 + len(STOCK)),
    ]
    alike: dict[tuple[bool, ...], list[str]] = {}
    for name, family in families.items():
        alike.setdefault(tuple(family.stock[column] < STOCK_DIFFERS for column in STOCK), []).append(name)
    for names in alike.values():
        members = [families[name] for name in names]
        errors = [[family.ours["float32"] for family in members]]
        errors += [[family.stock[column] for family in members] for column in STOCK]
        listed = "; ".join(f"{name} ({families[name].cases})" for name in names)
        lines.append("| " + " | ".join([listed, *(f"{max(each):.1e}" for each in errors)]) + " |")
    return "\n".join(lines)


def trainers_section(reports: list[Report], started_at: str) -> str:
    """A row for each trainer that could be run, and a line for each that could not."""
    lines = ["| trainer | cases | worst | not run |", "|---|---:|---:|---|"]
    notes, overall, scopes = [], 0.0, dict[str, list[str]]()
    for report in reports:
        if report.missing:
            notes.append(f"{report.name} was not run: {report.missing}.")
            continue
        errors = [error for errors in report.our_errors.values() for error in errors.values()]
        worst = max(errors, default=math.inf)
        overall = max(overall, worst)
        missing = {*report.cannot, *(cut for mode in OURS for cut in report.failed.get(mode, ()))}
        cells = [
            f"{report.name} {report.version[:9]}",
            str(report.cases),
            f"{worst:.1e}",
            ", ".join(sorted(missing)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
        if report.elsewhere:
            scope = (
                "the update, where a group may be cut" if report.elsewhere - {"dapo@batch"} else "the step"
            )
            modes = ", ".join(f"`{mode}`" for mode in sorted(report.elsewhere))
            scopes.setdefault(f"{modes} over {scope}", []).append(report.name)
    notes += [f"{', '.join(names)}: {text}, unlike verl." for text, names in scopes.items()]
    table = "\n".join(lines) + ("\n\n" + " ".join(notes) if notes else "")
    return TRAINERS.format(
        date=datetime.date.today().isoformat(),
        machine=machine(),
        commit=started_at,
        versions=versions(),
        minutes=sum(report.seconds for report in reports) / 60,
        modes=", ".join(f"`{mode}`" for mode in OURS),
        count=f"{sum(report.cases for report in reports):,}",
        worst=f"{overall:.1e}",
        bound=TOLERANCE["float32"],
        cuts=len(CUTS),
        table=table,
    )


def machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cpu_info = Path("/proc/cpuinfo")
    lines = cpu_info.read_text().splitlines() if cpu_info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{cores} cores of {names[0] if names else platform.processor()}"


def commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    changed = (
        " with uncommitted changes" if git("status", "--porcelain", "--", "src", "tests", "plugins") else ""
    )
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def versions() -> str:
    packages = (f"{name} {metadata.version(name)}" for name in ("torch", "verl", "transformers"))
    return ", ".join([f"Python {platform.python_version()}", *packages])


def page(
    families: dict[str, Family], reports: list[Report], parameters: int, seconds: float, started_at: str
) -> str:
    worst = {dtype: max(family.ours[dtype] for family in families.values()) for dtype in TOLERANCE}
    return PAGE.format(
        date=datetime.date.today().isoformat(),
        machine=machine(),
        commit=started_at,
        versions=versions(),
        minutes=seconds / 60,
        parameters=f"{parameters:,}",
        count=sum(family.cases for family in families.values()),
        worst_single=f"{worst['float32']:.1e}",
        worst_double=f"{worst['float64']:.1e}",
        bound_single=TOLERANCE["float32"],
        bound_double=TOLERANCE["float64"],
        table=table(families),
        trainers=trainers_section(reports, started_at),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "internals" / "exactness.md")
    parser.add_argument("--family", help="run this family alone and print its table")
    parser.add_argument(
        "--trainers", action="store_true", help="run the trainers alone and print their table"
    )
    arguments = parser.parse_args()
    if arguments.trainers:
        started_at = commit()
        section = trainers_section(measure_drivers(driver_names(), own=False, ours=True), started_at)
        sys.stdout.write(section + "\n")
        before, rest = re.split("(?=## Every trainer|## Method)", arguments.out.read_text(), maxsplit=1)
        text = f"{before}{section}\n\n{rest[rest.index('## Method') :]}"
        write_atomically(arguments.out, lambda file: file.write_text(text))
        return
    cases = [case for case in fixed_grid() if arguments.family in (None, case.family)]
    start, started_at = time.monotonic(), commit()  # what runs is what was imported then
    with Grid() as grid:
        families = measure(grid, cases)
        parameters = sum(parameter.numel() for parameter in grid.model.parameters())
    sys.stdout.write(table(families) + "\n")
    if arguments.family is None:
        reports = measure_drivers(driver_names(), own=False, ours=True)
        text = page(families, reports, parameters, time.monotonic() - start, started_at)
        write_atomically(arguments.out, lambda file: file.write_text(text))


if __name__ == "__main__":
    main()
