"""Is the plan right? Runs what `pv-rl plan` predicts, on one GPU, and writes predicted and measured side by side.

Models have Qwen3's shapes and random weights, which are made there. Each result is appended to a CSV file as soon as it
is known; a group of cases that is complete is skipped, so that a run that was cut is continued by the same command.

    python benchmarks/plan_calibration.py --out DIR --minutes 9             # the most telling groups that fit
    python benchmarks/plan_calibration.py --out DIR --minutes 9 --only train
    python benchmarks/plan_calibration.py --out DIR --cpu                   # a rehearsal without a GPU
    python benchmarks/plan_calibration.py --table DIR/calibration.csv       # as Markdown
    python benchmarks/plan_calibration.py --fit DIR/calibration.csv         # constants of the plan, and what is left
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from calibration.cases import GROUPS, REHEARSAL, Group  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("calibration"))
    parser.add_argument("--minutes", type=float, default=600, help="no group is begun that would not fit")
    parser.add_argument("--only", nargs="*", default=[], help="groups whose names begin so")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--fit", type=Path)
    parser.add_argument("--group", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.table or asked.fit:
        from calibration import results

        print(results.table(asked.table) if asked.table else results.fit(asked.fit))
        return
    groups = REHEARSAL if asked.cpu else GROUPS
    if asked.group:
        measure(next(one for one in groups if one.name == asked.group), asked)
        return
    until = time.time() + 60 * asked.minutes
    asked.out.mkdir(parents=True, exist_ok=True)
    wanted = [one for one in groups if not asked.only or one.name.startswith(tuple(asked.only))]
    for group in wanted:
        run_group(group, asked, until)


def run_group(group: Group, asked: argparse.Namespace, until: float) -> None:
    """One process of its own, whose output is also kept in a file."""
    done = asked.out / f"{group.name.replace(' ', '-')}.done"
    left = until - time.time()
    if done.exists() or left < group.seconds:
        print(
            f"{group.name}: {'done already' if done.exists() else f'{left:.0f} s are left, not begun'}",
            flush=True,
        )
        return
    begin = time.time()
    print(f"== {group.name}, about {group.seconds} s", flush=True)
    command = [sys.executable, str(Path(__file__).resolve()), "--out", str(asked.out), "--group", group.name]
    command += ["--until", str(until - 15), *(["--cpu"] if asked.cpu else [])]
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ.setdefault(
        "RAY_memory_monitor_refresh_ms", "0"
    )  # MemTotal of a virtual machine may grow with use
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    log = asked.out / f"{group.name.replace(' ', '-')}.log"
    with log.open("w") as stream:
        child = subprocess.Popen(
            command, env=env, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = child.wait(timeout=max(1.0, until - time.time()))
        except subprocess.TimeoutExpired:
            code = -9
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # an engine of vLLM, too, which would keep its memory
        child.wait()
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("[") and "]" in line[:11] and line[3:4] == ":":
            print(line)
    print(f"== {group.name}: exit code {code} after {time.time() - begin:.0f} s; log {log}", flush=True)
    if code == 0:
        done.touch()


def measure(group: Group, asked: argparse.Namespace) -> None:
    out = asked.out / "calibration.csv"
    if group.kind == "training":
        from calibration.training import measure as training

        training(group, out, asked.cpu, asked.until)
    elif group.kind == "generation":
        from calibration.generation import measure as generation

        generation(group, out, asked.until)
    else:
        from calibration.trainer import measure as trainer

        trainer(group, out, asked.cpu, asked.until)
    os._exit(0)  # neither vLLM's nor NCCL's threads are waited for


if __name__ == "__main__":
    main()
