"""Entries of the board: runs from disk, by verifier (a row) and by set (a column), and the runs that are refused."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from pv_eval.costs import Cost, cost_of
from pv_eval.counted import read_counted
from pv_eval.counts import VoteCounts
from pv_eval.graded import Graded
from pv_eval.intervals import Estimate, Intervals
from pv_eval.provenance import UNKNOWN, sampling_details, set_fingerprint, setting_of
from pv_eval.report.names import tails, tell_apart
from pv_eval.run_files import RunInfo, find_runs
from pv_eval.steps import Steps
from pv_eval.votes import Pair
from pv_judge.pages.text import plain, plural, shorten
from pv_rl.errors import DataError, PvRlError

__all__ = ["Entry", "Refused", "SetName", "read_entries"]

LONGEST = 80
"""Characters of a name, which is cut in the middle."""


@dataclass(frozen=True, kw_only=True)
class SetName:
    """A column: runs are in one only if the truth of all pairs is the same, see `set_fingerprint`."""

    name: str
    """As tables show it, unique in the board."""
    set_name: str
    fingerprint: str
    """See `pv_eval.provenance.set_fingerprint`."""
    pairs: int
    """With a label, whether a verifier voted on them or not."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run."""

    folder: str
    """The end of its path."""
    verifier: str
    """As tables show it; runs with the same name and the same sampling are one verifier."""
    on: SetName
    info: RunInfo
    counts: VoteCounts
    extra: Mapping[str, Estimate]
    """Further numbers of graded runs and of those that name wrong steps, by their titles."""
    cost: Cost
    date: str
    """When it was sampled, YYYY-MM-DD; runs before 30 November 2026 do not know it."""
    version: str
    """Of pv-eval."""
    commit: str
    revision: str
    """Of the model."""
    prompt: str


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A folder that is not on the board."""

    folder: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Run:
    folder: str
    info: RunInfo
    counts: VoteCounts
    extra: Mapping[str, Estimate]
    cost: Cost
    fingerprint: str
    labelled: int


def read_entries(folders: Sequence[Path], how: Intervals) -> tuple[list[Entry], list[Refused]]:
    """Read runs, or folders of runs.

    Raises:
        DataError: no run is left; the text has every reason.
    """
    paths: dict[Path, Path] = {}
    refused: list[Refused] = []
    for folder in folders:
        try:
            paths.update({path.resolve(): path for path in find_runs([folder])})
        except (PvRlError, OSError) as error:
            name = folder.resolve().name
            refused.append(Refused(folder=name, reason=_reason(error, folder, name)))
    runs: list[_Run] = []
    lean: dict[object, tuple[Pair, ...]] = {}
    for path, end in zip(paths.values(), tails(list(paths)), strict=True):
        try:
            runs.append(_read(path, end, how, lean))
        except (PvRlError, OSError) as error:
            refused.append(Refused(folder=end, reason=_reason(error, path, end)))
    if not runs:
        reasons = "; ".join(one.reason for one in refused)
        raise DataError(f"no run is left for the board: {reasons or 'no folder was given'}")
    return _arrange(runs), refused


def _reason(error: Exception, folder: Path, name: str) -> str:
    """Without the path of this machine, which a published page should not have."""
    return plain(str(error).replace(str(folder), name), 500)


def _read(path: Path, end: str, how: Intervals, lean: dict[object, tuple[Pair, ...]]) -> _Run:
    """A run without texts. Runs on the same pairs share them: `lean` has those of the runs before."""
    run = read_counted(path, traces=False)
    fingerprint = set_fingerprint(run.pairs)
    key = (fingerprint, *(pair.pair_id for pair in run.counts.pairs))
    if key not in lean:
        lean[key] = tuple(
            replace(pair, question="", proof="", steps=(), reference="", rubric="")
            for pair in run.counts.pairs
        )
    return _Run(
        folder=end,
        info=run.info,
        counts=replace(run.counts, pairs=lean[key]),
        extra=_extra(run.grades(how), run.first_errors(how)),
        cost=cost_of(run.counts.votes, run.info),
        fingerprint=fingerprint,
        labelled=sum(pair.label is not None for pair in run.pairs),
    )


def _extra(graded: Graded | None, steps: Steps | None) -> dict[str, Estimate]:
    """Further numbers of a run by their titles."""
    found = {}
    if graded is not None:
        found |= {"MAE of points": graded.of_votes["mae_points"], "QWK": graded.of_votes["qwk"]}
    if steps is not None:
        found["F1 of first errors"] = steps.of_votes["f1"]
    return found


def _arrange(runs: Sequence[_Run]) -> list[Entry]:
    sets = list(dict.fromkeys((one.info.set_name, one.fingerprint, one.labelled) for one in runs))
    names = tell_apart(
        [shorten(name, LONGEST) or "a set without a name" for name, _, _ in sets],
        [(plural(key[2], "pair"), key[1], f"set {number}") for number, key in enumerate(sets, 1)],
    )
    columns = {
        key: SetName(name=name, set_name=key[0], fingerprint=key[1], pairs=key[2])
        for name, key in zip(names, sets, strict=True)
    }
    rows: defaultdict[tuple[Any, ...], int] = defaultdict(lambda: len(rows))
    details: dict[int, tuple[str, ...]] = {}
    times: Counter[tuple[Any, ...]] = Counter()
    placed: list[tuple[int, SetName]] = []
    for run in runs:
        column = columns[run.info.set_name, run.fingerprint, run.labelled]
        own = sampling_details(run.info)
        key = (run.info.verifier, *own)
        times[key, column.name] += 1
        repeat = times[key, column.name]
        row = rows[(*key, repeat)]
        placed.append((row, column))
        seed = f"seed {UNKNOWN if run.info.seed is None else run.info.seed}"
        details.setdefault(row, (*own, seed, f"repeat {repeat}", f"verifier {row + 1}"))
    told = tell_apart(
        [shorten(key[0], LONGEST) or "a verifier without a name" for key in rows],
        [details[row] for row in rows.values()],
    )
    return [
        Entry(
            folder=run.folder,
            verifier=told[row],
            on=column,
            info=run.info,
            counts=run.counts,
            extra=run.extra,
            cost=run.cost,
            date=_date(run.info),
            version=setting_of(run.info, "versions", "pv-eval"),
            commit=setting_of(run.info, "commit"),
            revision=setting_of(run.info, "verifier", "revision"),
            prompt=setting_of(run.info, "prompt"),
        )
        for run, (row, column) in zip(runs, placed, strict=True)
    ]


def _date(info: RunInfo) -> str:
    parse: Callable[[str], date] = date.fromisoformat
    try:
        return parse(setting_of(info, "date")).isoformat()
    except ValueError:
        return UNKNOWN
