"""The setting that leaves slices out of the training set, as it is typed after `pv-data run CONFIG`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from pv_rl.recipes.override import quoted

__all__ = ["discarding"]

PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
"""What Hydra takes for nothing else in a list."""


def discarding(slices: Iterable[str]) -> str:
    """`split.discarded=[...]`, quoted for Hydra and for the shell: a name may have commas, brackets and quotes.

    Example: `S/proof/m (high), v2` gives `'split.discarded=['"'"'S/proof/m (high), v2'"'"']'`.
    """
    names = (name if PLAIN.fullmatch(name) else quoted(name) for name in slices)
    return shlex.quote(f"split.discarded=[{','.join(names)}]")
