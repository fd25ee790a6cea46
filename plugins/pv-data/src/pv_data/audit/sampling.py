"""Which questions and proofs are read: by a hash of the seed and the id.

A choice does not depend on the order in which ids come, and a larger sample contains the smaller one. So rounds are
cumulative, and a slice that grows keeps what was already read wherever the new ids leave room for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from pv_data.audit.counts import exact, share, whole
from pv_data.order import PILOT, digest
from pv_rl.errors import DataError

__all__ = ["cumulative_samples", "pilot_proofs", "pilot_questions"]


def pilot_questions(questions: Iterable[str], fraction: float = 0.05, *, seed: int = 0) -> tuple[str, ...]:
    """The pilot: `fraction` of the source questions, rounded up. In the order of their hashes.

    Args:
        questions: ids, each once.
        fraction: above 0, at most 1.
        seed: another seed, another pilot.

    Raises:
        DataError: an id that comes twice.
        ConfigError: no such fraction.
    """
    ids = _shuffled(questions, seed, PILOT)
    part = exact(share("fraction", fraction, open_=fraction != 1))
    return ids[: ceil(part * len(ids))]


def pilot_proofs(proofs: Mapping[str, str], questions: Iterable[str]) -> tuple[str, ...]:
    """The proofs of the pilot's questions, sorted by id.

    Args:
        proofs: the question of each proof.
        questions: of the pilot. One without proofs is no error: generation may have failed.
    """
    chosen = set(questions)
    return tuple(sorted(proof for proof, question in proofs.items() if question in chosen))


def cumulative_samples(
    proofs: Iterable[str], sizes: Sequence[int], *, seed: int = 0
) -> tuple[tuple[str, ...], ...]:
    """A sample a round; each begins with the one before.

    Example: sizes (10, 20) give ten proofs, and the same ten with ten more.

    Args:
        proofs: ids, each once: the pilot's proofs of one slice.
        sizes: proofs read by the end of each round, as `Rounds.of(size)` says. Not falling.
        seed: another seed, other samples.

    Raises:
        DataError: an id that comes twice, sizes that fall, or more than there are proofs.
    """
    ids = _shuffled(proofs, seed, "rounds")
    ends = [whole("sizes", size, least=0) for size in sizes]
    if ends != sorted(ends):
        raise DataError(f"sizes are {ends}; they count from the first proof on, so they cannot fall")
    if ends and ends[-1] > len(ids):
        raise DataError(
            f"the last round reads {ends[-1]} proofs and the pilot has {len(ids)}; draw a pilot of more questions, "
            f"or make the rounds end at {len(ids)}"
        )
    return tuple(ids[:end] for end in ends)


def _shuffled(ids: Iterable[str], seed: int, purpose: str) -> tuple[str, ...]:
    """Ids by their hashes. The purpose keeps the pilot's order from being that of the rounds."""
    given = list(ids)
    if wrong := [one for one in given if not isinstance(one, str)]:
        raise DataError(f"{wrong[0]!r} is no id; give texts")
    if len(set(given)) < len(given):
        twice = [one for one, count in Counter(given).items() if count > 1]
        raise DataError(f"{len(twice)} ids come more than once, {twice[0]!r} for one; give each once")
    number = whole("seed", seed, least=0)
    return tuple(sorted(given, key=lambda one: (digest(purpose, number, one), one)))
