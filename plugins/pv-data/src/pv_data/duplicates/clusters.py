"""Near-duplicate problems across all sources: MinHash finds candidates, and exact Jaccard similarity decides.

Locality-sensitive hashing (datasketch) finds candidates; what counts is the Jaccard similarity of the two sets of
shingles, |A and B| / |A or B|, computed from the sets themselves. The hashing can lose a pair, and cannot invent one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pv_data.duplicates.shingles import shingles
from pv_data.ids import Groups
from pv_data.records import Aside, Problem
from pv_judge.extras import needs
from pv_rl.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Nearby", "clusters", "first_of_each", "members", "similarity"]


PERMUTATIONS = 128
SLACK = 0.8
"""The hashing is tuned to this part of the threshold, so that it seldom loses a pair at the threshold itself."""


class Nearby:
    """Texts by key. In memory: 4 bytes a shingle and 512 a text, and datasketch's tables."""

    def __init__(self, threshold: float) -> None:
        """
        Args:
            threshold: Jaccard similarity from which two texts are near-duplicates; above 0, to 1.
        """
        if not 0 < threshold <= 1:
            raise ConfigError(f"threshold={threshold!r}; it is a Jaccard similarity, above 0 to 1")
        with needs("datasketch", "the search for near-duplicates", "pip install datasketch"):
            from datasketch import MinHashLSH
        self._threshold = threshold
        self._lsh: Any = MinHashLSH(threshold=threshold * SLACK, num_perm=PERMUTATIONS, weights=(0.1, 0.9))
        self._sets: dict[str, NDArray[np.uint32]] = {}

    def add(self, key: str, text: str) -> list[tuple[str, float]]:
        """Put a text in; returns those that were there and are near it, with their similarity."""
        found = shingles(text)
        sketch = _sketch(found)
        near = list(self._near(found, sketch))
        if key not in self._sets:
            self._sets[key] = found
            self._lsh.insert(key, sketch, check_duplication=False)
        return near

    def near(self, text: str) -> list[tuple[str, float]]:
        """Texts that are near this one, and their similarity, the nearest first."""
        found = shingles(text)
        return sorted(self._near(found, _sketch(found)), key=lambda one: (-one[1], one[0]))

    def _near(self, found: NDArray[np.uint32], sketch: Any) -> Iterator[tuple[str, float]]:
        for key in self._lsh.query(sketch):
            value = similarity(found, self._sets[key])
            if value >= self._threshold:
                yield key, value


def similarity(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> float:
    """Jaccard similarity of two sets, each sorted and not empty."""
    import numpy as np

    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)


def _sketch(found: NDArray[np.uint32]) -> Any:
    from datasketch import MinHash

    sketch = MinHash(num_perm=PERMUTATIONS, hashfunc=int)
    sketch.update_batch(found.tolist())
    return sketch


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
