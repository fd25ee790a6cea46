"""Which proofs are read next: of all slices, from the questions of one pilot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from pv_data.audit.decisions import SliceState
from pv_data.audit.sampling import cumulative_samples, pilot_proofs, pilot_questions

__all__ = ["Drawn", "Short", "draw"]


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
    asked = {of for own in proofs.values() for proof, of in own.items() if proof in wanted}
    return Drawn(
        proofs=wanted,
        short=tuple(short),
        touched=len(asked | set(touched)),
        questions=sum(map(len, questions.values())),
    )


def _enough(unread: Mapping[str, str], order: Collection[str], missing: int) -> float | None:
    """The smallest pilot, in thousandths, with so many unread proofs."""
    each = Counter(unread.values())
    for place, number in enumerate(accumulate(each[question] for question in order), start=1):
        if number >= missing:
            return ceil(1000 * place / len(order)) / 1000
    return None
