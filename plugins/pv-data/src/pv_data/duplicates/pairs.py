"""Similarity join: the pairs of texts whose weighted Jaccard similarity reaches a floor, from an inverted index.

A text is a sorted array of hashes of its features (`shingles`, `blind`); the last two bits of a hash say which weight
the feature has. The similarity of two texts is the weight of the features that both have, over that of the features
that one of them has. It hangs on the two texts alone.

Every pair that shares a feature is a candidate, but for features that so many texts have that comparing all of their
pairs would take more than `PAIRS` comparisons a text. Such a feature joins each of its texts to the next one only: ten
thousand copies of one template still hang together. So time and memory grow in proportion to the number of texts. The
search can lose a pair that shares nothing but such features; it invents none.
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
SMALL = 2 * 10**7
"""Comparisons that are always made: with a few thousand texts hardly a pair is lost."""
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
    """Pairs that reach the floor, each once, in no order: place in `left`, place in `right`, similarity.

    Args:
        left: features of each text, none of them empty.
        right: the texts that they are compared with; None for the pairs within `left`, each once, the smaller place
            first.
        floor: similarity from which a pair is given.
        weights: by the last two bits of a feature; up to four, multiples of a power of two, so that sums are exact.
    """
    import numpy as np

    rows = _matrix([*left, *(right or ())], weights)
    here = rows[: len(left)]
    there = here if right is None else rows[len(left) :]
    total_here, total_there = (np.asarray(one.sum(axis=1)).ravel() for one in (here, there))
    common = _common(here, there)
    rare, index = here.multiply(~common).tocsr(), there.multiply(~common).T.tocsr()
    rare.eliminate_zeros()
    index.eliminate_zeros()
    index.data[:] = 1  # the weight counts once
    rare_there = index.T.tocsr()
    most_here, most_there = (np.asarray(one.multiply(common).sum(axis=1)).ravel() for one in (here, there))
    holds = there.sign()

    def exact(at: NDArray[Any], to: NDArray[Any]) -> Iterator[tuple[int, int, float]]:
        shared = np.asarray(here[at].multiply(holds[to]).sum(axis=1)).ravel()
        values = shared / (total_here[at] + total_there[to] - shared)
        for place in np.flatnonzero(values >= floor):
            yield int(at[place]), int(to[place]), float(values[place])

    for first, last in _blocks(np.diff(index.indptr)[rare.indices], rare.indptr):
        found = (rare[first:last] @ index).tocoo()
        at, to, shared = found.row + first, found.col, found.data
        at_most = shared + np.minimum(most_here[at], most_there[to])
        wanted = at_most >= floor * (total_here[at] + total_there[to] - at_most)
        if right is None:
            wanted &= at < to
        yield from exact(at[wanted], to[wanted])
    at, to = _neighbours(here.tocsc(), there.tocsc(), np.flatnonzero(common), within=right is None)
    for first in range(0, len(at), BLOCK // 100):
        some = slice(first, first + BLOCK // 100)
        new = np.asarray(rare[at[some]].multiply(rare_there[to[some]]).sum(axis=1)).ravel() == 0
        yield from exact(at[some][new], to[some][new])


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


def _neighbours(
    here: Any, there: Any, columns: NDArray[Any], *, within: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Pairs of texts that follow each other in the list of a feature, each pair once."""
    import numpy as np

    found = [np.empty((2, 0), dtype=np.int64)]
    for column in columns:
        ours, theirs = (
            np.sort(one.indices[one.indptr[column] : one.indptr[column + 1]]) for one in (here, there)
        )
        if within:
            found.append(np.stack([ours[:-1], ours[1:]]))
        elif len(ours) and len(theirs):
            places = np.arange(max(len(ours), len(theirs)))
            found.append(np.stack([ours[places % len(ours)], theirs[places % len(theirs)]]))
    at, to = np.concatenate(found, axis=1).astype(np.int64)
    keys = np.unique(at * there.shape[0] + to)  # far faster than unique columns
    return keys // there.shape[0], keys % there.shape[0]


def _blocks(pairs: NDArray[Any], ends: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Rows that are compared together, so that the memory does not grow with their number."""
    import numpy as np

    done = np.concatenate([[0], np.cumsum(pairs)])[ends]
    first = 0
    while first < len(ends) - 1:
        last = int(np.searchsorted(done, done[first] + BLOCK, side="right")) - 1
        last = min(max(last, first + 1), len(ends) - 1)
        yield first, last
        first = last
