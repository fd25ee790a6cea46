"""Command `make fuzz MINUTES=50`: every target in turn under atheris, and a table of what was run and found.

    python -m fuzz.long_run --minutes 50 --out outputs/fuzz [TARGET ...]

The inputs that reached new code stay in `OUT/corpus`, and the next run starts from them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
from pathlib import Path

import atheris

OURS = (f"pv_{name}" for name in ("rl", "rules", "judge", "verdicts", "data", "eval", "runs"))
with atheris.instrument_imports(include=[*OURS, "pylatexenc"]):
    from fuzz.search import search
    from fuzz.targets import TARGETS

    for _target in TARGETS.values():  # what a reader imports when it is first called
        _target.run(b"0")

__all__ = ["main"]

COVERAGE = re.compile(r"^#\d+\s.*?cov: (\d+) ft: (\d+) corp: (\d+)", re.MULTILINE)
EXECUTED = re.compile(r"^RUNS (\d+)|^#(\d+)\s", re.MULTILINE)
PATIENCE = 10
"""Times the processor time that a target may take of the clock, on a machine that others use."""


def main() -> int:
    """Run the targets; 1 where one found something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET")
    parser.add_argument("--minutes", type=float, default=10.0, help="of processor time, all targets together")
    parser.add_argument("--out", type=Path, default=Path("outputs/fuzz"))
    options = parser.parse_args()
    names = options.targets or list(TARGETS)
    seconds = options.minutes * 60 / len(names)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = ["| target | executions | a second | branches | corpus | findings |", "|---|---|---|---|---|---|"]
    found, executions = list[str](), 0
    for name in names:
        row, count, new = _run(name, options.out, seconds)
        say(row)
        rows.append(row)
        found += new
        executions += count
    total = f"{executions:,} runs of {len(names)} targets, {seconds:.0f} s of processor time each; {len(found)} found"
    (options.out / "table.md").write_text("\n".join([*rows, "", total, *found, ""]))
    say("\n".join([total, *found]))
    return 1 if found else 0


def say(text: str) -> None:
    """Print at once, also into a file."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _run(name: str, out: Path, seconds: float) -> tuple[str, int, list[str]]:
    """A row of the table, the executions, and the findings of one target."""
    before = {path.name for path in (out / "found").glob(f"{name}-*")}
    log = out / "logs" / f"{name}.txt"
    log.parent.mkdir(exist_ok=True)
    child = multiprocessing.get_context("fork").Process(target=search, args=(name, out, seconds, log))
    child.start()
    child.join(PATIENCE * seconds + 60)
    late = child.is_alive()  # the machine had no time for it; an input that hangs ends it before
    child.kill()
    child.join()
    text = log.read_text(errors="replace")
    count = max((int(one or other) for one, other in EXECUTED.findall(text)), default=0)
    coverage, _, corpus = (COVERAGE.findall(text) or [("?", "?", "?")])[-1]
    found = sorted(
        {path.name for path in (out / "found").glob(f"{name}-*") if path.suffix != ".txt"} - before
    )
    found += [f"{name} ended with {child.exitcode}, see {log}"] if child.exitcode and not late else []
    return (
        f"| {name} | {count:,} | {count / seconds:,.0f} | {coverage} | {corpus} | {len(found)} |",
        count,
        found,
    )


if __name__ == "__main__":
    sys.exit(main())
