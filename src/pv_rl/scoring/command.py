"""What `pv-rl score` does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console
from rich.progress import track
from rich.table import Table
from yaml import YAMLError

from pv_rl.errors import ConfigError, DataError
from pv_rl.files import write_atomically
from pv_rl.judge.shared import close_local_services, local_reports
from pv_rl.rewards.base import Prepared, Reward, RewardInput, RewardOutput
from pv_rl.rewards.build import build_reward
from pv_rl.scoring.samples import open_source
from pv_rl.weights.writing import check_target

__all__ = ["read_options", "score_rollouts"]

AT_ONCE = 256


def score_rollouts(
    *,
    reward: str,
    rollouts: Path,
    options: Path | None = None,
    settings: Sequence[str] = (),
    step: int | None = None,
    response_column: str | None = None,
    label_column: str | None = None,
    limit: int | None = None,
    out: Path | None = None,
) -> None:
    """Score the rows and print what came of them. Arguments as in the command's help.

    Raises:
        PvRlError: something given is not what it should be.
        OSError: a file cannot be read or written.
    """
    built = build_reward(reward, read_options(options, settings))
    if out is not None:
        check_target("--out", out)
    source = open_source(rollouts, step=step, response_column=response_column, label_column=label_column)
    samples = list(source.samples())[:limit]
    if not samples:
        raise DataError(f"--limit {limit} leaves no row to score")
    if isinstance(built, Prepared):
        built.prepare()
    begin = time.perf_counter()
    outputs, reports = asyncio.run(_score(built, samples))
    seconds = time.perf_counter() - begin
    if out is not None:
        lines = [json.dumps(_line(s, o), ensure_ascii=False) for s, o in zip(samples, outputs, strict=True)]
        write_atomically(out, lambda file: file.write_text("\n".join(lines) + "\n", encoding="utf-8"))
    _print(reward, str(source.table.path), outputs, reports, seconds)


def read_options(file: Path | None, settings: Sequence[str]) -> dict[str, Any]:
    """The options of a YAML file, and `name=value` over them, as in Hydra (`judge.deadline_s=30`).

    Raises:
        ConfigError: the file is no mapping, or a setting cannot be read.
    """
    try:
        base = OmegaConf.load(file) if file is not None else OmegaConf.create({})
        merged = OmegaConf.merge(base, OmegaConf.from_dotlist(list(settings)))
        plain = OmegaConf.to_container(merged, resolve=True)
    except (OmegaConfBaseException, YAMLError, ValueError) as error:
        raise ConfigError(f"the options of the reward cannot be read: {error}") from error
    if not isinstance(plain, dict):
        raise ConfigError(f"{file} is no mapping of options to values")
    return {str(name): value for name, value in plain.items()}


async def _score(
    reward: Reward, samples: Sequence[RewardInput]
) -> tuple[list[RewardOutput], list[dict[str, float]]]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(sample: RewardInput) -> RewardOutput:
        async with places:
            return await reward.score(sample)

    tasks = [asyncio.ensure_future(one(sample)) for sample in samples]
    progress = Console(stderr=True)
    try:
        for task in track(
            asyncio.as_completed(tasks), "scoring", len(tasks), console=progress, transient=True
        ):
            await task
        return [task.result() for task in tasks], await local_reports()
    finally:
        for task in tasks:
            task.cancel()
        await close_local_services()


def _line(sample: RewardInput, output: RewardOutput) -> dict[str, Any]:
    return {
        "uid": sample.uid,
        "step": sample.step,
        "label": sample.label,
        **asdict(output),
        "output": sample.response,
    }


def _print(
    reward: str,
    source: str,
    outputs: Sequence[RewardOutput],
    reports: Sequence[dict[str, float]],
    seconds: float,
) -> None:
    console = Console(soft_wrap=True)
    table = Table("", "", box=None, show_header=False, title=f"{reward} on {source}", title_justify="left")
    valid = [output for output in outputs if output.valid]
    rows = {
        "rows": f"{len(outputs)}",
        "seconds": f"{seconds:.2f}",
        "without a reward": f"{len(outputs) - len(valid)}",
    }
    if valid:
        rows["mean score"] = f"{sum(output.score for output in valid) / len(valid):.4f}"
    for name in outputs[0].metrics:
        rows[name] = f"{sum(output.metrics[name] for output in outputs) / len(outputs):.4f}"
    for report in reports:
        rows |= {
            f"judge: {name.removesuffix('/sum').removesuffix('/max')}": f"{value:.4g}"
            for name, value in report.items()
        }
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
