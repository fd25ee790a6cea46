"""Train-test split by question and never by proof, so that no problem is in both.

Problems that belong together (near-duplicates, and those with the same text) go the same way. A cluster is called after
the smallest id of its problems, and drawn by a hash of that and of the seed: further problems move nobody, but for
those that they are duplicates of.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pv_data.ids import Groups
from pv_data.records import Problem, content_id
from pv_rl.errors import ConfigError, DataError

__all__ = ["Placed", "SplitRules", "Splits", "split_problems", "text_key"]

SPLITS = ("train", "test")
BY_CLUSTER = "with a problem that it belongs to"


@dataclass(frozen=True, kw_only=True)
class SplitRules:
    """What decides, from the strongest: the audit, the problem's own wish, its source, the draw."""

    test: float = 0.05
    """Part of the questions that are drawn for the test set; 0 to below 1."""
    seed: int = 0
    test_sources: tuple[str, ...] = ()
    """Sources of which every problem is for the test set."""
    hold_out_audited: bool = True
    """Whether every question of which people marked a proof is for the test set, as in the paper."""

    def __post_init__(self) -> None:
        if not 0 <= self.test < 1:
            raise ConfigError(f"split.test={self.test!r}; it is a part of the questions: 0 to below 1")


@dataclass(frozen=True, kw_only=True)
class Placed:
    """Where a problem goes."""

    split: str
    """`train` or `test`."""
    why: str
    """`audited`, `asked for`, `source`, `drawn`, or that it goes with another problem."""
    cluster: str
    """The smallest id of the problems that go together."""


@dataclass(frozen=True, kw_only=True)
class Splits:
    """The split of all problems."""

    placed: Mapping[str, Placed]
    """By problem id."""
    conflicts: tuple[str, ...]
    """Clusters of which some problems were asked to be in train and others had to be in test: all are in test."""

    def of(self, problem_id: str) -> str:
        """`train` or `test`.

        Raises:
            DataError: the problem was not among those that were split.
        """
        if problem_id not in self.placed:
            raise DataError(f"the problem {problem_id} has no split; split all problems of the run together")
        return self.placed[problem_id].split

    def counts(self) -> Counter[tuple[str, str]]:
        """Problems by split and reason."""
        return Counter((one.split, one.why) for one in self.placed.values())


def text_key(text: str) -> str:
    """The same for texts that differ in white space, case or the spelling of a character only."""
    return content_id("text", " ".join(unicodedata.normalize("NFKC", text).casefold().split()))


def split_problems(
    problems: Iterable[Problem],
    rules: SplitRules,
    *,
    clusters: Mapping[str, str] | None = None,
    audited: Collection[str] = (),
) -> Splits:
    """Place every problem.

    Where the problems of a cluster want to go different ways, test wins and takes the whole cluster along: a question
    that is trained on by mistake spoils the test set, one that is held out by mistake costs a few training rows.

    Args:
        clusters: problem id to the id of its cluster; a problem that is not in it stands alone.
        audited: ids of problems of which people marked a proof.

    Raises:
        DataError: a problem whose own split is neither train nor test.
    """
    groups, wishes = Groups(), defaultdict[str, set[tuple[str, str]]](set)
    for problem in problems:
        groups.join("id " + problem.id, "text " + text_key(problem.text))
        if clusters is not None and problem.id in clusters:
            groups.join("id " + problem.id, "cluster " + clusters[problem.id])
        wishes[problem.id] |= _wishes(problem, rules, audited)
    members = defaultdict[str, list[str]](list)
    for problem_id in sorted(wishes):
        members[groups.find("id " + problem_id)].append(problem_id)
    placed: dict[str, Placed] = {}
    conflicts: list[str] = []
    for cluster in members.values():
        wanted = {split for one in cluster for split, _ in wishes[one]}
        if len(wanted) > 1:
            conflicts.append(cluster[0])
        split = "test" if "test" in wanted else "train" if wanted else _drawn(cluster[0], rules)
        for one in cluster:
            own = sorted(why for to, why in wishes[one] if to == split)
            why = own[0] if own else BY_CLUSTER if wanted else "drawn"
            placed[one] = Placed(split=split, why=why, cluster=cluster[0])
    return Splits(placed=placed, conflicts=tuple(sorted(conflicts)))


def _wishes(problem: Problem, rules: SplitRules, audited: Collection[str]) -> set[tuple[str, str]]:
    """Split and reason; none: to be drawn."""
    if problem.split and problem.split not in SPLITS:
        raise DataError(
            f"the problem {problem.native_id!r} of {problem.source} has the split {problem.split!r}; it is train, "
            "test, or empty to be drawn. Correct it in the source"
        )
    if rules.hold_out_audited and problem.id in audited:
        held_out = {("test", "audited")}
        return held_out | ({("train", "asked for")} if problem.split == "train" else set())
    if problem.split:
        return {(problem.split, "asked for")}
    return {("test", "source")} if problem.source in rules.test_sources else set()


def _drawn(cluster: str, rules: SplitRules) -> str:
    return "test" if int(content_id("split", rules.seed, cluster), 16) / 16**20 < rules.test else "train"
