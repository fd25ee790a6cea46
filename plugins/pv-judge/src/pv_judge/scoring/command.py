"""The command `pv-rl score`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from rich.console import Console
from rich.progress import Progress

from pv_judge.files import check_target
from pv_judge.pages.blocks import Column, Heading, Table
from pv_judge.pages.terminal import print_blocks, standard_output
from pv_judge.pages.text import plural
from pv_judge.ray_service import close_local_services, local_reports, run_folder
from pv_judge.scoring.samples import Source, open_source
from pv_judge.scoring.score_file import ScoreFile, fingerprint
from pv_judge.yaml_errors import load_settings, yaml_errors
from pv_rl.errors import ConfigError, DataError, PvRlError
from pv_rl.rewards.base import RewardInput, RewardOutput
from pv_rl.rewards.build import CheckedReward, build_reward

__all__ = ["read_options", "score_rollouts"]

AT_ONCE = 256
MANY = 20
"""The command stops when at least so many rows failed, and as many as were scored."""
PACE = frozenset(
    {"breaker", "budget", "cache", "deadline_s", "hedging", "limits", "prices", "retries", "timeouts"}
)
"""Settings of a judge that may change when rows are added to a file: its answers do not depend on them."""


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
    """Score the rows and print a summary. Arguments as in the command's help.

    Rows that `out` has are not scored again. Whatever stops the command, the file has all rows scored so far.

    Raises:
        PvRlError: an argument is invalid, or the reward failed for a row; the other rows are scored.
        OSError: a file cannot be read or written.
    """
    plain = read_options(options, settings)
    built = build_reward(reward, plain)
    if out is not None:
        check_target("--out", out)
        if out.exists() and not out.is_file():
            raise DataError(
                f"--out {out} is not a regular file. Name one: the same command reads it again to resume"
            )
    source = open_source(
        rollouts,
        label_kind=built.label_kind,
        step=step,
        response_column=response_column,
        label_column=label_column,
    )
    total = sum(1 for _ in source.samples(limit))  # reads every row before anything is paid for
    if not total:
        raise DataError(f"--limit {limit} leaves no row to score. Give a larger one")
    scoring = _Scoring(built, source)
    if out is not None:
        how = {"reward": reward, "options": _lasting(plain), "columns": [source.response, source.label]}
        scoring.file = ScoreFile(out, fingerprint(source.table.path, how), scoring.summary.add)
    spending = run_folder.set(None if out is None else out.with_name(f"{out.name}.run"))
    try:
        begin = time.perf_counter()
        reports = scoring.run(limit, total)
        scoring.summary.print(f"{reward} on {source.table.path}", time.perf_counter() - begin, reports)
        if scoring.file is not None:
            scoring.file.finish()
    except KeyboardInterrupt:
        kept = "no row was saved. Name a file with --out to keep rows"
        if scoring.file is not None:
            kept = f"{len(scoring.file)} of {plural(total, 'row')} are in {out}; the same command scores the others"
        Console(stderr=True, soft_wrap=True).print(kept, markup=False, highlight=False)
        raise
    finally:
        run_folder.reset(spending)
        if scoring.file is not None:
            scoring.file.close()
    if scoring.failed:
        tried = scoring.summary.rows + len(scoring.failed)
        raise DataError(
            f"the reward failed for {len(scoring.failed)} of {plural(tried, 'row')}"
            + (f", so the other {total - tried} were not tried" if tried < total else "")
            + f". The first: {scoring.failed[0]}"
        )


def read_options(file: Path | None, settings: Sequence[str]) -> dict[str, Any]:
    """The options of a YAML file, overridden by `name=value` as in Hydra (`judge.deadline_s=30`).

    Raises:
        ConfigError: the file is not a mapping, or a setting cannot be read.
    """
    try:
        with yaml_errors():
            base = load_settings(file) if file is not None else OmegaConf.create({})
            merged = OmegaConf.merge(base, OmegaConf.from_dotlist(list(settings)))
            plain = OmegaConf.to_container(merged, resolve=True)
    except ValueError as error:
        raise ConfigError(f"the options of the reward cannot be read: {error}") from error
    if not isinstance(plain, dict):
        raise ConfigError(f"{file} does not contain a mapping of options to values")
    return {str(name): value for name, value in plain.items()}


def _lasting(options: Any, *, of_judge: bool = False) -> Any:
    """The options without a judge's `PACE`, at any depth."""
    if not isinstance(options, dict):
        return options
    return {
        name: _lasting(value, of_judge=name == "judge")
        for name, value in options.items()
        if not (of_judge and name in PACE)
    }


class _Summary:
    """Sums over the scored rows."""

    def __init__(self) -> None:
        self.rows = 0
        self._valid = 0
        self._score = 0.0
        self._metrics: dict[str, float] = {}

    def add(self, output: RewardOutput) -> None:
        """Count a row."""
        self.rows += 1
        self._valid += output.valid
        self._score += output.score
        for name, value in output.metrics.items():
            self._metrics[name] = self._metrics.get(name, 0.0) + value

    def print(self, title: str, seconds: float, judges: Sequence[dict[str, float]]) -> None:
        """Print means over rows, the score's over those that have a reward, and what the judges report."""
        numbers = {
            "rows": f"{self.rows}",
            "seconds": f"{seconds:.2f}",
            "without a reward": f"{self.rows - self._valid}",
        }
        if self._valid:
            numbers["mean score"] = f"{self._score / self._valid:.4f}"
        numbers |= {name: f"{total / self.rows:.4f}" for name, total in self._metrics.items()}
        for report in judges:
            numbers |= {
                f"judge: {name.removesuffix('/sum').removesuffix('/max')}": f"{value:.4g}"
                for name, value in report.items()
            }
        columns: list[Column[tuple[str, str]]] = [
            Column("", lambda row: row[0], left=True),
            Column("", lambda row: row[1], left=True),
        ]
        print_blocks([Heading(title, level=1), Table.of(columns, numbers.items())], standard_output())


class _Scoring:
    """Scores the rows of a source and counts the results."""

    def __init__(self, reward: CheckedReward, source: Source) -> None:
        self.reward = reward
        self.source = source
        self.file: ScoreFile | None = None
        self.summary = _Summary()
        self.failed: list[str] = []

    @property
    def broken(self) -> bool:
        """Whether to stop, because the reward fails for most rows."""
        return len(self.failed) >= max(MANY, self.summary.rows)

    def run(self, limit: int | None, total: int) -> list[dict[str, float]]:
        """Score the rows that the file does not have. Returns the judges' numbers, see `local_reports`."""
        self.reward.prepare()
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("scoring", total=total)
            rows = self.source.samples(limit)
            return asyncio.run(self._all(rows, lambda: progress.advance(task)))

    async def _all(
        self, rows: Iterator[tuple[int, RewardInput]], advance: Callable[[], None]
    ) -> list[dict[str, float]]:
        workers = [asyncio.ensure_future(self._some(rows, advance)) for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*workers)
            return await local_reports()
        finally:
            for worker in workers:
                worker.cancel()
            await close_local_services()

    async def _some(self, rows: Iterator[tuple[int, RewardInput]], advance: Callable[[], None]) -> None:
        """One of several workers that take rows from the same iterator."""
        for number, sample in rows:
            if self.file is None or number not in self.file:
                await asyncio.sleep(0)  # or a reward that never waits would block Ctrl-C
                if self.broken:
                    return
                await self._one(number, sample)
            advance()

    async def _one(self, number: int, sample: RewardInput) -> None:
        try:
            output = await self.reward.score(sample)
        except PvRlError as error:
            self.failed.append(f"{self.source.where(number)}: {error}")
            return
        if self.file is not None:
            self.file.append(number, _line(sample, output))
        self.summary.add(output)


def _line(sample: RewardInput, output: RewardOutput) -> dict[str, Any]:
    return {
        "uid": sample.uid,
        "step": sample.step,
        "label": sample.label,
        **asdict(output),
        "output": sample.response,
    }
