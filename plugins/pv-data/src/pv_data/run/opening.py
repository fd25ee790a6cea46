"""What every process of a stage opens: the models, the budget and the problems."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from pv_data.asking.asker import Asker
from pv_data.asking.settings import share
from pv_data.records import Problem, Proof
from pv_data.run.config import RunConfig
from pv_data.run.spent import budget_of
from pv_data.table import read_rows
from pv_rl.errors import DataError
from pv_rl.judge.spending import Spending

__all__ = ["Opened", "opened"]


@dataclass(frozen=True, kw_only=True)
class Opened:
    """See the module."""

    askers: dict[str, Asker]
    """By the model's name in the config."""
    problems: dict[str, Problem]
    """By id. A process holds them all: they are few beside their proofs."""

    def problem(self, proof: Proof) -> Problem:
        """Of a proof; a `DataError` where it is gone."""
        try:
            return self.problems[proof.problem_id]
        except KeyError:
            raise DataError(
                f"the problem {proof.problem_id} of the proof {proof.id} is in no part of problems/: restore it, or "
                "collect again with --redo collect"
            ) from None

    def stop(self, why: str) -> None:
        """Send nothing any more."""
        for asker in self.askers.values():
            asker.stop(why)


@contextlib.asynccontextmanager
async def opened(run: Path, config: RunConfig, names: set[str], part: int, of: int) -> AsyncIterator[Opened]:
    """Open what one of `of` processes needs to ask the models `names`.

    Raises:
        ConfigError: a key that is not in the environment.
    """
    budget = budget_of(run, config, of)
    folder = run / "workers" / str(part)
    folder.mkdir(parents=True, exist_ok=True)
    spending = Spending(folder, budget)
    askers = {
        name: Asker(
            share(config.models[name], part, of, run / "answers.sqlite"),
            budget,
            patience=config.patience,
            spent=spending.save,
        )
        for name in sorted(names)
    }
    problems = {problem.id: problem for problem in read_rows(run / "problems", Problem)}
    try:
        yield Opened(askers=askers, problems=problems)
    finally:
        for asker in askers.values():
            await asker.aclose()
        spending.save(at_once=True)
