"""Which spec of pv-rl is each trainer's own loss aggregation? Measures them and writes docs/concepts/conversion.md.

python benchmarks/conversion.py [--out FILE] [--trainer NAME ...]
"""

from __future__ import annotations

import argparse
import datetime
import math
import sys
from pathlib import Path

import exactness  # puts the helpers of the tests on the path
from effective_weights import FORMULAS
from formula_names import EXACT, Finding
from trainer_bench import Report, driver_names, measure_drivers

from pv_judge.files import write_atomically

SPEC_FORMULAS = {"dr_grpo": ("1/(P G L)", "1/(N L)")}
"""Of modes with a number: by prompt and @batch."""
WITHOUT_SPEC = ("", "sum")
SHARES = {"(N / all rows)": "`c_N`", "(T / all tokens)": "`c_T`", "(P / all prompts)": "`c_P`"}
"""Short names of scales."""
UNCOUNTED = "uncounted rows"
UNCOUNTED_CUTS = ("rows that do not count", "a group that does not count", "all of it")
"""Cuts that the table names together where they have one factor."""

MANY = 4
"""So many cuts that differ alike are not listed, if no cut has the weights of the uncut step."""

PAGE = """# Conversion between trainers

*Written by `benchmarks/conversion.py`; do not edit. Measured {date} on {machine}, started at commit {commit},
with {versions}; {minutes:.0f} minutes.*

To move a recipe to another trainer:

1. Find your setting in the second table, and use its [spec](weightings.md) in the new trainer: as
   `loss_agg_mode` in verl, through [`pv_trainers`](../../plugins/pv-trainers/README.md) elsewhere. The
   learning rate keeps its meaning.
2. If the last column has a factor `c` for your cuts, the old gradient was `c` times that of the spec:

| | `c` is the same in every step (`A`, `M`, `R`) | `c` changes with the data (`T`, `N`) |
|---|---|---|
| SGD | multiply the learning rate by `c` | no learning rate gives the same updates |
| Adam, AdamW | change nothing: `c` cancels, but for `eps` | steps with a large `c` counted for more |
| gradient clipping | divide the threshold by `c` | steps with a large `c` were clipped more often |

## What each setting does

    a step -> M updates -> R ranks -> A micro-batches on each, K = R A of an update -> rows, each with |o_i| tokens

An update has `T` tokens, `N` responses and `P` prompts that count; a micro-batch has `T_k` tokens, and its longest
response `L_k`. `L` is a length that is set, 60 or 64 here. `c_N`, `c_T`, `c_P` are the shares of rows, tokens and
prompts that count. "{uncounted}" is *{uncounted_cuts}*. A spec by prompt is
scaled by `M` ([weightings](weightings.md#scopes-and-mini-batches)).

{table}

Not run: {missing}.

**Limits:** verl and TRL also divide advantages by a standard deviation by default. With `pv_trainers`, KL and
entropy terms keep the new trainer's aggregation.

## Method

Each trainer's own functions compute the gradient of an update on a CPU in float32, and least squares the weight of
each token. The table names the formula and scale that reproduce all updates of a cut to {bound:.0e}. In cuts that the
last column does not name, the error against the oracle of [exactness](../internals/exactness.md) is at most
{worst:.1e}.

<!-- not run: needs clones of two trainers -->

    PV_TRAINERS_NEMO_RL=... PV_TRAINERS_PRIME_RL=... .venv/bin/python benchmarks/conversion.py
"""


def formula(name: str) -> str:
    """What is printed for a name or spec."""
    if not name:
        return "differs between the tokens of a row"
    base, _, scope = name.partition("@")
    if name in FORMULAS:
        return f"`{FORMULAS[name]}`"
    return f"`{SPEC_FORMULAS[base.partition(':')[0]][scope == 'batch']}`"


def row(report: Report, mode: str) -> list[str]:
    """The cells of one setting."""
    findings = report.findings[mode]
    main = _uncut(findings)
    holds, others = [], dict[str, list[str]]()
    for cut, finding in findings.items():
        if (finding.formula, finding.scale) == (main.formula, main.scale) and finding.error < math.inf:
            holds.append(finding.error)
        elif finding != main:
            others.setdefault(_difference(finding, main), []).append(cut)
    most = max(others, key=lambda what: len(others[what]), default="")
    if len(holds) == 1 and len(others.get(most, ())) >= MANY:
        del others[most]
        others[most] = ["every other cut"]
    return [
        f"{report.name} {report.version[:9]}",
        f"`{mode}`" + (" (default)" if mode == report.default else ""),
        _with_scale(formula(main.formula), main.scale),
        "none"
        if main.formula in WITHOUT_SPEC or " " in main.formula
        else _with_scale(f"`{main.formula}`", main.scale),
        f"{max(holds):.1e}" if holds else "",
        "; ".join(f"{name_cuts(cuts)}: {what}" for what, cuts in others.items()),
    ]


def name_cuts(cuts: list[str]) -> str:
    """Cuts in a cell; those with an uncounted row have one name where all three are there."""
    together = set(UNCOUNTED_CUTS) <= set(cuts)
    kept = [cut for cut in cuts if not (together and cut in UNCOUNTED_CUTS)]
    return ", ".join([*kept, *([UNCOUNTED] if together else [])])


def _uncut(findings: dict[str, Finding]) -> Finding:
    return findings.get("not cut") or next(iter(findings.values()))


def _with_scale(text: str, scale: str) -> str:
    return text if scale in ("", "1") else f"{text} times {SHARES.get(scale, scale)}"


def _difference(finding: Finding, main: Finding) -> str:
    if finding.formula == main.formula:
        return f"times {SHARES.get(finding.scale, finding.scale)}"
    return _with_scale(formula(finding.formula), finding.scale)


def not_run(report: Report) -> str:
    """The cuts that a trainer was not run with, or ''."""
    if report.missing:
        return f"{report.name} ({report.missing})"
    failed = [f"{cut} with `{mode}`" for mode, cuts in report.failed.items() for cut in cuts]
    cuts = ", ".join([*report.cannot, *failed])
    return f"{report.name} ({cuts})" if cuts else ""


def table(reports: list[Report]) -> str:
    """A trainer's name is in its first line. Settings that differ in their errors alone share a line."""
    heads = ["trainer", "setting", "weight of a token", "spec", "where it differs"]
    rows: list[list[str]] = []
    for report in reports:
        for mode in report.findings:
            trainer, setting, weight, spec, _, others = row(report, mode)
            if rows and [trainer, weight, spec, others] == rows[-1][:1] + rows[-1][2:]:
                rows[-1][1] += f", {setting}"
            else:
                rows.append([trainer, setting, weight, spec, others])
    names = [cells[0] for cells in rows]
    for cells, name, above in zip(rows[1:], names[1:], names, strict=False):
        cells[0] = "" if name == above else name
    return _markdown(heads, rows, "|---|---|---|---|---|")


def worst(reports: list[Report]) -> float:
    """The largest error that a row gives."""
    return max(float(row(report, mode)[4] or 0) for report in reports for mode in report.findings)


def _markdown(heads: list[str], rows: list[list[str]], rule: str) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in [heads, *rows]]
    return "\n".join([lines[0], rule, *lines[1:]])


def page(reports: list[Report], started_at: str) -> str:
    measured = [report for report in reports if not report.missing]
    return PAGE.format(
        date=datetime.date.today().isoformat(),
        machine=exactness.machine(),
        commit=started_at,
        versions=exactness.versions(),
        minutes=sum(report.seconds for report in reports) / 60,
        bound=EXACT,
        worst=worst(measured),
        uncounted=UNCOUNTED,
        uncounted_cuts=", ".join(UNCOUNTED_CUTS),
        table=table(measured),
        missing=", ".join(filter(None, map(not_run, reports))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=exactness.ROOT / "docs" / "concepts" / "conversion.md")
    parser.add_argument(
        "--trainer", action="append", choices=driver_names(), help="these alone, and print the table"
    )
    arguments = parser.parse_args()
    started_at = exactness.commit()
    reports = measure_drivers(arguments.trainer or driver_names(), own=True, ours=False)
    sys.stdout.write(table([report for report in reports if not report.missing]) + "\n")
    if arguments.trainer is None:
        text = page(reports, started_at)
        write_atomically(arguments.out, lambda file: file.write_text(text))


if __name__ == "__main__":
    main()
