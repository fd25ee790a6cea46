"""Which problems are near-duplicates of each other, across all sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pv_data.duplicates.nearby import Nearby
from pv_data.groups import Groups
from pv_data.records import Aside, Problem

__all__ = ["clusters", "first_of_each", "members"]


def clusters(problems: Iterable[Problem], *, threshold: float = 0.6) -> dict[str, str]:
    """Problem id to cluster id: the smallest problem id of the cluster. A problem without a near-duplicate is its own.

    Two problems are in one cluster if a chain of near-duplicates joins them, so that a split by cluster never parts a
    pair. Texts that differ in white space, case, punctuation or LaTeX spacing are the same.

    Args:
        problems: of all sources; a problem that comes twice counts once.
        threshold: Jaccard similarity of the shingles, above 0 to 1; measured in docs/sources.md.
    """
    index, groups, seen = Nearby(threshold), Groups(), dict[str, None]()
    for problem in problems:
        if problem.id in seen:
            continue
        seen[problem.id] = None
        for other, _ in index.add(problem.id, problem.text):
            groups.join(problem.id, other)
    return {one: groups.find(one) for one in seen}


def first_of_each(problems: Iterable[Problem], found: Mapping[str, str]) -> Iterator[Problem | Aside]:
    """The first problem of each cluster, in the given order: that of the config's sources; the others aside.

    A policy for runs that pay by problem. The split needs none: it keeps all problems of a cluster together.
    """
    kept: dict[str, Problem] = {}
    for problem in problems:
        first = kept.setdefault(found[problem.id], problem)
        if first.id == problem.id:
            yield problem
        else:
            yield Aside(
                stage="duplicate",
                row=problem.id,
                reason="near-duplicate",
                detail=f"of {first.source} {first.native_id} ({first.id})",
                content=problem.text[:2000],
            )


def members(found: Mapping[str, str]) -> dict[str, list[str]]:
    """The clusters of more than one problem: cluster id to problem ids, sorted."""
    of: defaultdict[str, list[str]] = defaultdict(list)
    for problem, cluster in found.items():
        of[cluster].append(problem)
    return {cluster: sorted(several) for cluster, several in of.items() if len(several) > 1}
