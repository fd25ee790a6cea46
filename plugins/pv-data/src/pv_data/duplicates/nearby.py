"""An index of shingle sets by MinHash and locality-sensitive hashing (datasketch), checked exactly.

The hashing finds candidates; what counts is the Jaccard similarity of the two sets, |A and B| / |A or B|, computed from
the sets themselves. The hashing can lose a pair, and cannot invent one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pv_data.duplicates.shingles import shingles
from pv_rl.errors import ConfigError
from pv_rl.extras import needs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Nearby", "similarity"]

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
