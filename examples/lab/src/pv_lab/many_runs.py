"""Batch training: many runs of the reference loop, in stacks, into a folder of Parquet files that can be resumed."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pv_judge.files import write_atomically
from pv_lab.reference_loop import ReferenceLoop, Run, Settings
from pv_rl.errors import DataError, PvRlError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "AtOnce",
    "Device",
    "Out",
    "PartOfWork",
    "Prompts",
    "Proofs",
    "Steps",
    "read_runs",
    "run_command",
    "train_runs",
]

Out: TypeAlias = Annotated[Path, typer.Option(help="Folder for the runs. A stopped run is resumed.")]
Device: TypeAlias = Annotated[str, typer.Option(help="cpu or cuda.")]
Steps: TypeAlias = Annotated[int, typer.Option(help="Steps of a run.")]
Prompts: TypeAlias = Annotated[int, typer.Option(help="Prompts a step.")]
Proofs: TypeAlias = Annotated[int, typer.Option(help="Held-out proofs.")]
AtOnce: TypeAlias = Annotated[int, typer.Option(help="Runs trained together.")]
PartOfWork: TypeAlias = Annotated[
    str, typer.Option(help="2/3: the second of three processes that share the work.")
]
"""Options that the commands on top of `train_runs` share."""

RUN = tuple(one.name for one in fields(Run))
"""Columns that tell runs apart."""


def run_command(command: Callable[..., Any]) -> None:
    """Run a module's command; an error that the user can correct is a line."""

    @functools.wraps(command)
    def shown(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except (PvRlError, OSError) as error:
            raise typer.BadParameter(str(error)) from error

    typer.run(shown)


def train_runs(
    runs: Sequence[Run],
    settings: Settings,
    folder: Path,
    *,
    device: str = "cpu",
    at_once: int = 60,
    part: str = "1/1",
) -> None:
    """Train `runs`, `at_once` of them together, and write each stack to a file of `folder` when it is done.

    A stack that is there already is not trained again; its name is a hash of its runs and settings.

    Args:
        runs: all of them, whatever the part.
        settings: of all runs.
        folder: of the files.
        device: cpu or cuda.
        at_once: runs trained together.
        part: "2/3" trains the second, fifth, eighth ... stack: three processes on one GPU share the work so.

    Raises:
        DataError: `part` is none, or a start cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    stacks = _part([list(runs[i : i + at_once]) for i in range(0, len(runs), at_once)], part)
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TimeElapsedColumn(), TimeRemainingColumn()),
    )
    with Progress(*columns) as progress:
        task = progress.add_task("steps", total=len(stacks) * settings.steps)
        for number, stack in enumerate(stacks, start=1):
            progress.update(task, description=f"stack {number} of {len(stacks)}")
            path = folder / f"{_name(stack, settings)}.parquet"
            if not path.exists():
                rows = []
                for row in ReferenceLoop(stack, settings, device=device).train():
                    rows.append(row)
                    progress.update(task, completed=(number - 1) * settings.steps + row["step"])
                # held-out rows have fewer
                names = list(dict.fromkeys(name for row in rows for name in row))
                table = pa.table({name: [row.get(name) for row in rows] for name in names})
                table = table.replace_schema_metadata(
                    {"settings": json.dumps(asdict(settings)), "device": _device(device)}
                )
                write_atomically(path, lambda temporary, table=table: pq.write_table(table, temporary))
            progress.update(task, completed=number * settings.steps)


def _part(stacks: list[list[Run]], part: str) -> list[list[Run]]:
    try:
        number, of = map(int, part.split("/"))
    except ValueError:
        number, of = 0, 0
    if not 1 <= number <= of:
        raise DataError(f"part is {part!r}; give 1/3, 2/3 or 3/3 for example")
    return stacks[number - 1 :: of]


def read_runs(folder: Path) -> pa.Table:
    """Every row of a folder that `train_runs` wrote.

    Raises:
        DataError: there is none, two files hold the same run, or they were trained with different settings.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise DataError(
            f"{folder} holds no .parquet file of runs; write some with pv_lab.many_runs.train_runs"
        )
    tables = {file: pq.read_table(file) for file in files}
    owner: dict[tuple[object, ...], Path] = {}
    for file, table in tables.items():
        if _settings(table) != _settings(tables[files[0]]):
            raise DataError(
                f"{file} and {files[0]} were trained with different settings; keep them in two folders"
            )
        names = [name for name in RUN if name in table.column_names]
        for run in set(zip(*(table[name].to_pylist() for name in names), strict=True)):
            if run in owner:
                raise DataError(
                    f"{file} and {owner[run]} both hold the run {dict(zip(names, run, strict=True))}; delete one of "
                    "them (another --at-once makes other files of the same runs)"
                )
            owner[run] = file
    return pa.concat_tables(tables.values(), promote_options="default")


def _settings(table: pa.Table) -> bytes | None:
    return (table.schema.metadata or {}).get(b"settings")


def _name(stack: Sequence[Run], settings: Settings) -> str:
    text = json.dumps([asdict(settings), *(asdict(run) for run in stack)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _device(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device.startswith("cuda") else device
