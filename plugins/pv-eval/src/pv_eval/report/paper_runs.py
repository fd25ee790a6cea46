"""Runs of a paper report: which run is a model's on a set, and its accuracies and gains with intervals."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pv_eval.counted import read_counted
from pv_eval.counts import Columns, Floats, Sums, VoteCounts, ratio, sum_by_question
from pv_eval.intervals import Estimate, Intervals, estimate_all
from pv_eval.paired import common
from pv_eval.report.paper import RIGHT, SIZES
from pv_eval.report.paper_models import Model, find_model, read_models
from pv_eval.run_files import RunInfo, find_runs
from pv_judge.pages.text import plain, plural
from pv_rl.errors import DataError

__all__ = ["SPECS", "Missing", "Run", "Runs", "read_runs"]

SPECS = {
    "curated": "curated:RUN",
    "opc": "opc:FILE",
    "proofbench": "proofbench:FILE",
    "error_types": "error_types:FILE",
    "style": "style:RUN",
    "best_of_k": "table:FILE --set-option name=best_of_k",
}
"""The paper's sets, and how `pv-eval run --set` gets each."""
SAMPLES = 8
"""Of the paper's Avg@8."""


@dataclass(frozen=True)
class Missing:
    """Votes that a cell needs."""

    verifier: str
    set_name: str

    @property
    def command(self) -> str:
        """The command that makes them; the user replaces the words in capitals."""
        return (
            f"pv-eval run --set {SPECS[self.set_name]} --format verdict --verifier URL_OR_PATH --model MODEL "
            f"--name {shlex.quote(plain(self.verifier))} -n {SAMPLES} --out FOLDER"
        )


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: a verifier's votes on a set."""

    folder: Path
    info: RunInfo
    counts: VoteCounts
    tag: str
    """What tells it from the verifier's first run on this set; empty for the first."""

    @property
    def verifier(self) -> str:
        """The verifier's name."""
        return self.info.verifier

    @property
    def set_name(self) -> str:
        """The set's name."""
        return self.info.set_name

    @property
    def label(self) -> str:
        """As tables show it."""
        return self.verifier + self.tag

    @property
    def where(self) -> str:
        """As notes name it."""
        return f"{self.label} on {self.set_name or 'a set without a name'}"


@dataclass(frozen=True, kw_only=True)
class Runs:
    """All runs of a report, and what was noted while tables were made of them."""

    runs: Sequence[Run]
    models: Mapping[str, Model]
    how: Intervals
    used: set[Path] = field(default_factory=set)
    """Folders of the runs that a table or the figure shows."""
    notes: dict[str, None] = field(default_factory=dict)
    """Sentences that a reader of the numbers needs, each once."""

    def on(self, set_name: str) -> list[Run]:
        """The runs on a set."""
        return [run for run in self.runs if run.set_name == set_name]

    def resolve(self, name: str) -> str:
        """The verifier that a name in a file of models, or a row of the paper, is; see `find_model`."""
        return find_model(self.models, name, dict.fromkeys(run.verifier for run in self.runs))

    def find(self, name: str, set_name: str, tag: str = "") -> Run | None:
        """A verifier's run on a set, with its tag; None: there is none."""
        verifier = self.resolve(name)
        for run in self.on(set_name):
            if (run.verifier, run.tag) == (verifier, tag):
                self.used.add(run.folder)
                return run
        return None

    def base_of(self, run: Run) -> Run | None:
        """The run of its verifier's base model, see `alike`."""
        return self.alike(self.models[run.verifier].base, run)

    def alike(self, name: str, run: Run) -> Run | None:
        """A verifier's run on the set of another run: one with the same temperature and format, else its first."""
        verifier = self.resolve(name)

        def likeness(one: Run) -> tuple[bool, ...]:
            given = ((each.info.temperature, each.info.verdict_format, each.tag) for each in (one, run))
            return tuple(first == second for first, second in zip(*given, strict=True))

        these = [one for one in self.on(run.set_name) if one.verifier == verifier]
        found = max(these, key=likeness, default=None)
        self.used.update({found.folder} if found else ())
        return found

    def paired(self, first: Run, second: Run) -> tuple[VoteCounts, VoteCounts] | None:
        """Both on the pairs that both voted on; None, with a note, where they cannot be paired."""
        names = f"{second.label} and {first.label} on {first.set_name}"
        given = [run.info.temperature for run in (second, first)]
        if given[0] != given[1]:
            words = " and ".join("unknown" if one is None else f"{one:g}" for one in given)
            self.notes[f"{names} have different temperatures: {words}."] = None
        try:
            one, two = common(first.counts, second.counts)
        except DataError as error:
            reason = f"{names} cannot be paired, so their difference has no interval: {error}."
            self.notes[reason] = None
            return None
        if len(one.pairs) < max(len(first.counts.pairs), len(second.counts.pairs)):
            self.notes[
                f"The difference of {names} is on the {plural(len(one.pairs), 'pair')} that both voted on."
            ] = None
        return one, two

    def mean(self, parts: Sequence[Sums], *, share: bool) -> Estimate:
        """The mean over parts of `sum / all`; questions of all parts are left out one by one."""
        rows = [len(part.table) for part in parts]
        table = np.zeros((sum(rows), 2 * len(parts)))
        for number, part in enumerate(parts):
            start = sum(rows[:number])
            table[start : start + rows[number], 2 * number : 2 * number + 2] = part.table

        def statistic(s: Columns) -> Floats:
            each = [ratio(s[f"sum {number}"], s[f"all {number}"]) for number in range(len(parts))]
            return np.mean(each, axis=0)

        names = tuple(f"{name} {number}" for number in range(len(parts)) for name in ("sum", "all"))
        return estimate_all(Sums(names=names, table=table), {"mean": statistic}, self.how, plain=not share)[
            "mean"
        ]

    def accuracy(self, *parts: VoteCounts) -> Estimate:
        """Avg@n, the mean of several sets where several are given."""
        return self.mean([_sums(counts, counts.right) for counts in parts], share=True)

    def gain(self, *parts: tuple[VoteCounts, VoteCounts]) -> Estimate:
        """Accuracy of the second less that of the first on the same pairs, the mean of several sets."""
        return self.mean([_sums(one, two.right - one.right) for one, two in parts], share=False)


def _sums(counts: VoteCounts, values: Floats) -> Sums:
    return sum_by_question(counts, {"sum": values, "all": np.ones(len(counts.pairs))})


def read_runs(folders: Sequence[Path], how: Intervals, models: Path | None = None) -> Runs:
    """Read runs and the roles of their verifiers.

    Args:
        folders: of runs, in the order of tables; see `find_runs`.
        how: of the intervals.
        models: file of roles, see `read_models`.

    Raises:
        DataError: a run cannot be read, or its numbers cannot be trusted.
        ConfigError: see `read_models`.
    """
    if not folders:
        raise DataError("no run was given; give the folder of one run or more")
    found: list[Run] = []
    notes: dict[str, None] = {}
    counted = [read_counted(folder, traces=False) for folder in find_runs(folders)]
    # the paper's votes are verdicts, so a verifier's first run on a set is one of verdicts if there is one
    for read in sorted(counted, key=lambda read: read.info.verdict_format != "verdict"):
        run = Run(folder=read.folder, info=read.info, counts=read.counts, tag=_tag(read.info, found))
        found.append(run)
        for line in (*map(str, read.problems), *_oddities(run)):
            notes[f"{run.where}: {line}"] = None
    verifiers = list(dict.fromkeys(run.verifier for run in found))
    return Runs(runs=found, models=read_models(models, verifiers), how=how, notes=notes)


def _tag(info: RunInfo, before: Sequence[Run]) -> str:
    same = [run for run in before if (run.verifier, run.set_name) == (info.verifier, info.set_name)]
    if not same:
        return ""
    first, tag = same[0].info, ""
    if info.temperature != first.temperature and info.temperature is not None:
        tag += f", temperature {info.temperature:g}"
    if info.verdict_format != first.verdict_format:
        tag += f", format {plain(info.verdict_format, 40)}"
    times = Counter(run.tag.partition(" (run ")[0] for run in same)[tag]
    return f"{tag} (run {times + 1})" if times else tag


def _oddities(run: Run) -> list[str]:
    """In what a run differs from those of the paper."""
    info, counts, lines = run.info, run.counts, []
    fewest, most = int(counts.samples.min()), int(counts.samples.max())
    if (fewest, most) != (SAMPLES, SAMPLES) and run.set_name in SPECS:
        given = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        lines.append(f"votes a pair: {given}, where the paper has {SAMPLES}.")
    size = (len(counts.pairs), len(counts.questions))
    if run.set_name in SIZES and size != SIZES[run.set_name]:
        theirs = SIZES[run.set_name]
        lines.append(
            f"{plural(size[0], 'pair')} of {plural(size[1], 'question')}, where the paper's set has {theirs[0]} of "
            f"{theirs[1]}: not the same "
            "set."
        )
    elif (right := int(counts.label.sum())) != RIGHT.get(run.set_name, right):
        lines.append(
            f"{right} right proofs, where the paper's set has {RIGHT[run.set_name]}: not the same labels."
        )
    if info.verdict_format != "verdict":
        lines.append(
            f"verdicts were read by the format {info.verdict_format}, the paper's are True or False."
        )
    return lines
