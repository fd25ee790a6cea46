"""Audit sample: the questions of the pilot and the proofs that are read next, chosen by a hash of seed and id.

A choice does not depend on the order of ids, and a larger sample contains the smaller one. So rounds are cumulative,
and a slice that grows keeps what was already read wherever the new ids leave room for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from pv_data.audit.counts import exact, share, whole
from pv_data.audit.marks import SliceState
from pv_data.ids import PILOT, digest
from pv_judge.pages.text import plural
from pv_rl.errors import DataError

__all__ = ["Drawn", "Short", "cumulative_samples", "draw", "pilot_proofs", "pilot_questions"]


def pilot_questions(questions: Iterable[str], pilot: float = 0.05, *, seed: int = 0) -> tuple[str, ...]:
    """The pilot: this share of the source questions, rounded up. In the order of their hashes.

    Args:
        questions: ids, each once.
        pilot: above 0, at most 1.
        seed: another seed, another pilot.

    Raises:
        DataError: an id that comes twice.
        ConfigError: no such share.
    """
    ids = _shuffled(questions, seed, PILOT)
    part = exact(share("pilot", pilot, ends="(]"))
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
            f"the last round reads {plural(ends[-1], 'proof')} and the pilot has {len(ids)}; draw a pilot "
            "of more questions, "
            f"or make the rounds end at {len(ids)}"
        )
    return tuple(ids[:end] for end in ends)


def _shuffled(ids: Iterable[str], seed: int, purpose: str) -> tuple[str, ...]:
    """Ids by their hashes. The purpose keeps the pilot's order from being that of the rounds."""
    given = list(ids)
    if wrong := [one for one in given if not isinstance(one, str)]:
        raise DataError(f"{wrong[0]!r} is not an id. Give texts")
    if len(set(given)) < len(given):
        twice = [one for one, count in Counter(given).items() if count > 1]
        raise DataError(
            f"{plural(len(twice), 'id')} given more than once, {twice[0]!r} for one; give each once"
        )
    number = whole("seed", seed, least=0)
    return tuple(sorted(given, key=lambda one: (digest(purpose, number, one), one)))


@dataclass(frozen=True, kw_only=True)
class Short:
    """A slice of which the pilot has fewer proofs than its round still needs."""

    slice: str
    round: int
    missing: int
    """Proofs that the round still needs."""
    there: int
    """Of these, what the pilot has."""
    enough: float | None
    """The pilot that would have all, with the same seed; None: the slice has too few."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """What is to be read."""

    proofs: Mapping[str, int]
    """The round of each, by proof id."""
    short: tuple[Short, ...]
    touched: int
    """Questions of these proofs and of those that were read before."""
    questions: int
    """That there are."""
    earlier: float = 0.0
    """The smallest pilot, with the same seed, that has all questions that were read before; 0: this one has them."""
    disputed: int = 0
    """Proofs that are left out because readers differ on them; they wait for a third reader."""
    again: tuple[str, ...] = ()
    """Ids of those that one person has read and could not decide."""


def draw(
    states: Iterable[SliceState],
    proofs: Mapping[str, Mapping[str, str]],
    read: Collection[str],
    questions: Mapping[str, Collection[str]],
    *,
    touched: Collection[str] = (),
    pilot: float = 0.05,
    seed: int = 0,
) -> Drawn:
    """The round of each open slice, from the pilot's questions of its source.

    The pilot is the same for all slices of a source, and a larger one contains the smaller: with the same seed each
    round goes on where the one before stopped, also where the pilot has grown. A slice of which the pilot has too few
    proofs gets those that there are, and is named.

    Args:
        states: of the slices.
        proofs: labelled proofs of each slice, and their questions.
        read: proofs that count already.
        questions: of each source.
        touched: questions of which a proof was read.
        pilot: part of each source's questions, rounded up; above 0, at most 1.
        seed: keep it for all rounds.

    Raises:
        ConfigError: no such part.
    """
    chosen = {question for ids in questions.values() for question in pilot_questions(ids, pilot, seed=seed)}
    wanted: dict[str, int] = {}
    short = []
    for state in states:
        if not state.missing:
            continue
        unread = {proof: of for proof, of in proofs[state.slice].items() if proof not in read}
        there = pilot_proofs(unread, chosen)
        number = min(state.missing, len(there))
        (sample,) = cumulative_samples(there, [number], seed=seed)
        wanted |= dict.fromkeys(sample, state.round)
        if number < state.missing:
            source = state.slice.partition("/")[0]
            order = pilot_questions(questions.get(source, ()), 1, seed=seed)
            enough = _enough(unread, order, state.missing)
            short.append(
                Short(
                    slice=state.slice, round=state.round, missing=state.missing, there=number, enough=enough
                )
            )
    outside = set(touched) - chosen
    asked = {of for own in proofs.values() for proof, of in own.items() if proof in wanted}
    return Drawn(
        proofs=wanted,
        short=tuple(short),
        touched=len(asked | set(touched)),
        questions=sum(map(len, questions.values())),
        earlier=max((_pilot_of(outside, ids, seed) for ids in questions.values()), default=0.0),
    )


def _pilot_of(touched: Collection[str], ids: Collection[str], seed: int) -> float:
    """The smallest pilot, in thousandths, with all of `touched` that a source has."""
    order = pilot_questions(ids, 1, seed=seed)
    last = max((place for place, one in enumerate(order, start=1) if one in touched), default=0)
    return ceil(1000 * last / len(order)) / 1000 if last else 0.0


def _enough(unread: Mapping[str, str], order: Collection[str], missing: int) -> float | None:
    """The smallest pilot, in thousandths, with so many unread proofs."""
    each = Counter(unread.values())
    for place, number in enumerate(accumulate(each[question] for question in order), start=1):
        if number >= missing:
            return ceil(1000 * place / len(order)) / 1000
    return None
