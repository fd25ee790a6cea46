"""Similarity join: the pairs of texts whose weighted Jaccard similarity reaches a floor, from an inverted index.

A text is a sorted array of hashes of its features (`shingles`, `blind`); the last two bits of a hash say which weight
the feature has. The similarity of two texts is the weight of the features that both have, over that of the features
that one of them has. It hangs on the two texts alone.

Every pair that shares a feature is a candidate, but for features that so many texts have that comparing all of their
pairs would take more than `PAIRS` comparisons a text: these count in the similarity and find no candidates. So time and
memory grow in proportion to the number of texts. The search can lose a pair that shares nothing but such features; it
invents none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pv_rl.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["check_threshold", "similar_pairs", "similarity"]

PAIRS = 4000
"""Comparisons of two texts by one feature, for each text."""
SMALL = 10**8
"""Comparisons that are always made: up to a few thousand texts no pair is lost."""
BLOCK = 2 * 10**6
"""Comparisons at a time, of some 50 bytes each."""


def check_threshold(threshold: float) -> float:
    """The threshold.

    Raises:
        ConfigError: it is no similarity.
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold={threshold!r}; expected a Jaccard similarity, above 0 to 1")
    return threshold


def similarity(one: NDArray[np.int64], other: NDArray[np.int64], weights: Sequence[float] = (1.0,)) -> float:
    """Weighted Jaccard similarity of two texts' features; 0 to 1."""
    return next((value for _, _, value in similar_pairs([one], [other], 0.0, weights)), 0.0)


def similar_pairs(
    left: Sequence[NDArray[np.int64]],
    right: Sequence[NDArray[np.int64]] | None,
    floor: float,
    weights: Sequence[float] = (1.0,),
) -> Iterator[tuple[int, int, float]]:
    """Pairs that reach the floor: place in `left`, place in `right`, similarity; by the first, then the second.

    Args:
        left: features of each text, none of them empty.
        right: the texts that they are compared with; None for the pairs within `left`, each once, the smaller place
            first.
        floor: similarity from which a pair is given.
        weights: by the last two bits of a feature, fractions of two.
    """
    import numpy as np

    rows = _matrix([*left, *(right or ())], weights)
    here = rows[: len(left)]
    there = here if right is None else rows[len(left) :]
    total_here, total_there = (np.asarray(one.sum(axis=1)).ravel() for one in (here, there))
    common = _common(here, there)
    rare_here, rare_there = here.multiply(~common).tocsr(), there.multiply(~common).tocsr()
    rare_here.eliminate_zeros()
    rare_there.eliminate_zeros()
    rest_here, rest_there = here - rare_here, there - rare_there
    most_here, most_there = (np.asarray(one.sum(axis=1)).ravel() for one in (rest_here, rest_there))
    index = rare_there.T.tocsr()
    index.data[:] = 1  # the weight counts once
    holds = rest_there.sign()
    for first, last in _blocks(rare_here, index):
        found = (rare_here[first:last] @ index).tocoo()
        at, to, shared = found.row + first, found.col, found.data
        wanted = at < to if right is None else np.full(len(at), fill_value=True)
        sums = total_here[at] + total_there[to]
        at_most = shared + np.minimum(most_here[at], most_there[to])
        wanted &= at_most >= floor * (sums - at_most)
        at, to, shared, sums = at[wanted], to[wanted], shared[wanted], sums[wanted]
        shared = shared + np.asarray(rest_here[at].multiply(holds[to]).sum(axis=1)).ravel()
        values = shared / (sums - shared)
        for place in np.lexsort((to, at)):
            if values[place] >= floor:
                yield int(at[place]), int(to[place]), float(values[place])


def _matrix(texts: Sequence[NDArray[np.int64]], weights: Sequence[float]) -> Any:
    """Texts by features, with the features' weights."""
    import numpy as np
    from scipy.sparse import csr_array

    every = np.concatenate([np.empty(0, dtype=np.int64), *texts])
    names, columns = np.unique(every, return_inverse=True)
    ends = np.cumsum([0, *(len(one) for one in texts)])
    data = np.array([*weights, *[1.0] * (4 - len(weights))])[every & 3]
    return csr_array((data, columns, ends), shape=(len(texts), len(names)))


def _common(here: Any, there: Any) -> NDArray[np.bool_]:
    """The features that find no candidates: those of the most pairs, until the others are few enough."""
    import numpy as np

    counts = [np.bincount(one.indices, minlength=one.shape[1]).astype(np.float64) for one in (here, there)]
    pairs = counts[0] * counts[1]
    order = np.argsort(pairs, kind="stable")
    most = max(SMALL, PAIRS * (here.shape[0] + there.shape[0]))
    common = np.zeros(len(pairs), dtype=bool)
    common[order[np.cumsum(pairs[order]) > most]] = True
    return common


def _blocks(rows: Any, index: Any) -> Iterator[tuple[int, int]]:
    """Rows that are compared together, so that the memory does not grow with their number."""
    import numpy as np

    pairs = np.diff(index.indptr)[rows.indices]
    done = np.concatenate([[0], np.cumsum(pairs)])[rows.indptr]
    first = 0
    while first < rows.shape[0]:
        last = int(np.searchsorted(done, done[first] + BLOCK, side="right")) - 1
        last = min(max(last, first + 1), rows.shape[0])
        yield first, last
        first = last
