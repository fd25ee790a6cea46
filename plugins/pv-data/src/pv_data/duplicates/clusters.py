"""Clusters of near-duplicate problems, across all sources: connected components of the similar pairs.

Two comparisons. As written (`blinded=False`): runs of three tokens, for the de-duplication of training data, where a
problem with another number is another problem. Blinded: names of variables, numbers and order make little difference,
for the check of leakage, where it is the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pv_data.duplicates.blind import THRESHOLD, WEIGHTS, blind
from pv_data.duplicates.pairs import check_threshold, similar_pairs
from pv_data.duplicates.shingles import shingles
from pv_data.ids import Groups
from pv_data.records import Aside, Problem

__all__ = ["clusters", "first_of_each", "members"]

AS_WRITTEN = 0.6
"""Similarity of runs of three tokens from which two texts are near-duplicates."""


def clusters(
    problems: Iterable[Problem], *, threshold: float | None = None, blinded: bool = False
) -> dict[str, str]:
    """Problem id to cluster id: the smallest problem id of the cluster. A problem without a near-duplicate is its own.

    Two problems are in one cluster if a chain of near-duplicates joins them, so that a split by cluster never parts a
    pair. Texts that differ in white space, case, punctuation or LaTeX spacing are the same.

    Args:
        problems: of all sources; a problem that comes twice counts once.
        threshold: Jaccard similarity, above 0 to 1; by default 0.6 for texts as written and 0.42 blinded, as measured
            in docs/concepts/duplicates.md.
        blinded: compare what rewording leaves, in place of the text as written.
    """
    if threshold is None:
        threshold = THRESHOLD if blinded else AS_WRITTEN
    check_threshold(threshold)
    texts = {problem.id: problem.text for problem in problems}
    ids, groups = list(texts), Groups()
    sets = [blind(text) if blinded else shingles(text) for text in texts.values()]
    for one, other, _ in similar_pairs(sets, None, threshold, WEIGHTS if blinded else (1.0,)):
        groups.join(ids[one], ids[other])
    return {one: groups.find(one) for one in ids}


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
