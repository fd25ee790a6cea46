"""Rollout folder: chooses the file of a step. verl's `trainer.rollout_data_dir` gets a file `N.jsonl` a step."""

from __future__ import annotations

import re
from pathlib import Path

from pv_rl.errors import DataError

__all__ = ["SUFFIXES", "choose_file", "name_steps"]

SUFFIXES = (".jsonl", ".parquet")
STEP = re.compile(r"(?:.*step[_-]?)?([0-9]+)", re.IGNORECASE)  # not train-00000-of-00003


def choose_file(path: Path, step: int | None) -> tuple[Path, str | None]:
    """Find the file to read.

    Args:
        path: a file, or a folder of files that are named for their step, `12.jsonl` or `step_12.parquet`.
        step: the step to take of a folder; None for the last.

    Returns:
        The file, and for a file of a folder which one of them it is.

    Raises:
        DataError: there is no such file, or several.
    """
    if not path.exists():
        raise DataError(f"{path} does not exist; give a .parquet or .jsonl file, or a folder of them")
    if not path.is_dir():
        if path.suffix not in SUFFIXES:
            raise DataError(f"{path} is neither a .parquet nor a .jsonl file; give one, or a folder of them")
        return path, None
    files = sorted(
        file for file in path.iterdir() if file.suffix in SUFFIXES and not file.name.startswith(".")
    )
    steps: dict[int, list[Path]] = {}
    for file in files:
        if match := STEP.fullmatch(file.stem):
            steps.setdefault(int(match[1]), []).append(file)
    if not files:
        raise DataError(
            f"{path} is a folder without .parquet or .jsonl files; give one that has them, or a file"
        )
    if not steps:
        if len(files) == 1 and step is None:
            return files[0], None
        names = ", ".join(file.name for file in files[:5]) + (", ..." if len(files) > 5 else "")
        raise DataError(
            f"the files of {path} are not named for steps, as 12.jsonl or step_12.parquet are: {names}. "
            "Give one of them"
        )
    taken = max(steps) if step is None else step
    if taken not in steps:
        raise DataError(f"{path} has no file of step {taken}; it has {name_steps(steps)}")
    if len(steps[taken]) > 1:
        names = " and ".join(file.name for file in steps[taken])
        raise DataError(f"{path} has {names} for step {taken}; give the file itself")
    return steps[taken][0], f"step {taken} of {name_steps(steps)}"


def name_steps(steps: dict[int, list[Path]] | set[int]) -> str:
    """`step 3`, `steps 1 to 3`, or `4 steps from 1 to 9`."""
    first, last, count = min(steps), max(steps), len(steps)
    if count == 1:
        return f"step {first}"
    return (
        f"steps {first} to {last}" if count == last - first + 1 else f"{count} steps from {first} to {last}"
    )
