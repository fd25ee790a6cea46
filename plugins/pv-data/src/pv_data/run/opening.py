"""Resources of a stage's process: the models, the budget and the problems."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pv_data.asking.asker import Asker, Kept
from pv_data.asking.settings import Model, share
from pv_data.records import Problem, Proof
from pv_data.run.config import RunConfig
from pv_data.run.places import answers, unanswered
from pv_data.run.spent import budget_of
from pv_data.table import read_rows
from pv_judge.spend_file import SpendFile
from pv_rl.errors import DataError

__all__ = ["Opened", "opened", "problem_of"]


@dataclass(frozen=True, kw_only=True)
class Opened:
    """See the module."""

    askers: dict[str, Asker | Kept]
    """By the model's name in the config."""
    problems: dict[str, Problem]
    """By id. A process holds them all: they are few beside their proofs."""

    def stop(self, why: str) -> None:
        """Send nothing any more."""
        for asker in self.askers.values():
            asker.stop(why)


def problem_of(problems: Mapping[str, Problem], proof: Proof) -> Problem:
    """Of a proof; a `DataError` where it is gone."""
    try:
        return problems[proof.problem_id]
    except KeyError:
        raise DataError(
            f"the problem {proof.problem_id} of the proof {proof.id} is in no part of problems/: restore it, or "
            "collect again with --redo collect"
        ) from None


@contextlib.asynccontextmanager
async def opened(
    run: Path,
    config: RunConfig,
    names: set[str],
    served: Mapping[str, Model],
    part: int,
    of: int,
    money: float,
) -> AsyncIterator[Opened]:
    """Open what one of `of` processes needs to ask the models `names`, with its part of the money that is left.
    `served` has how local models are reached.

    Raises:
        ConfigError: a key that is not in the environment.
    """
    budget = budget_of(run, config, money)
    folder = run / "workers" / str(part)
    folder.mkdir(parents=True, exist_ok=True)
    spending = SpendFile(folder, budget)

    def asker(name: str) -> Asker | Kept:
        model = share(config.models[name], part, of, answers(run))
        if model.local is not None and name not in served:
            return Kept(model, unanswered(run))
        through = share(served[name], part, of, answers(run)) if name in served else None
        return Asker(
            model,
            budget,
            unanswered(run),
            through=through,
            patience=config.patience,
            spent=spending.save,
        )

    problems = {problem.id: problem for problem in read_rows(run / "problems", Problem)}
    async with contextlib.AsyncExitStack() as opened_now:
        opened_now.callback(spending.close)
        askers: dict[str, Asker | Kept] = {}
        for name in sorted(names):
            askers[name] = asker(name)
            opened_now.push_async_callback(askers[name].aclose)
        yield Opened(askers=askers, problems=problems)
