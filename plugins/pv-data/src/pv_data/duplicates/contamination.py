"""Contamination check: problems of a run that are in test sets, reworded or not."""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pv_data.duplicates.blind import THRESHOLD, WEIGHTS, blind, features
from pv_data.duplicates.contamination_report import Contamination, Hit
from pv_data.duplicates.pairs import check_threshold, similar_pairs, similarity
from pv_data.records import Aside, Problem, Proof
from pv_data.sources.reading.unusable import FILE_NOT_READ
from pv_rl.errors import DataError

if TYPE_CHECKING:
    from pv_judge.config import Endpoint

__all__ = ["BAND", "contamination", "problems_of"]

BAND = 0.12
"""How far below the threshold a pair is shown to a person."""
NEAREST = 3
"""Pairs below the threshold for each test problem: those of the highest similarity."""
BY_EMBEDDING = 200
"""Pairs that only the embeddings show: those of the highest cosine."""
WHY = 300
"""Characters of what two problems share."""

Pair = tuple[int, int]
"""Place of a problem of the run, and of a test problem."""


def contamination(
    problems: Iterable[Problem],
    test_sets: Mapping[str, Iterable[Problem]],
    *,
    threshold: float = THRESHOLD,
    embeddings: Endpoint | None = None,
    decisions: Mapping[tuple[str, str], str] | None = None,
    split_of: Mapping[str, str] | None = None,
) -> Contamination:
    """Look for each problem in the test sets. Run and sets are held in memory, some kilobytes a problem.

    Args:
        problems: of the run.
        test_sets: by name; `problems_of` reads one from a file.
        threshold: similarity from which a pair counts, above 0 to 1; measured in docs/concepts/duplicates.md. Pairs up
            to 0.12 below it are shown to a person, at most three for a test problem.
        embeddings: server whose embeddings show further pairs to a person.
        decisions: `same` or `different`, by the ids of the problem and of the test problem.
        split_of: `train` or `test`, by the id of the problem.

    Raises:
        ConfigError: the threshold is no similarity.
        SetupError, DataError: the embedding server does not answer, or in another form.
    """
    check_threshold(threshold)
    splits = split_of or {}
    here = list({problem.id: problem for problem in problems}.values())
    sets = {name: {one.id: one for one in several} for name, several in test_sets.items()}
    there = [(name, one) for name, several in sets.items() for one in several.values()]
    ours, theirs = [blind(one.text) for one in here], [blind(one.text) for _, one in there]
    floor = max(threshold - BAND, threshold / 2)
    decided = _places(here, [one for _, one in there], decisions or {})
    pairs = (
        pair for pair in similar_pairs(ours, theirs, floor, WEIGHTS) if decided.get(pair[:2]) != "different"
    )
    values = _kept(pairs, threshold, [name for name, _ in there])
    cosines = _by_embedding(here, [one for _, one in there], embeddings) if embeddings else {}
    wanted = (
        values.keys() | decided.keys() | set([pair for pair in cosines if pair not in values][:BY_EMBEDDING])
    )
    spelt = lru_cache(maxsize=10_000)(features)  # a problem can be in many pairs
    hits: dict[str, list[Hit]] = {"same": [], "different": [], "": []}
    for at, to in wanted:
        (name, test), pair = there[to], (at, to)
        value = values[pair] if pair in values else similarity(ours[at], theirs[to], WEIGHTS)
        hit = _hit(here[at], name, test, value, spelt)
        split = splits.get(here[at].id, "")
        hit = replace(hit, split=split, cosine=cosines.get(pair), decision=decided.get(pair, ""))
        hits[hit.decision or ("same" if value >= threshold else "")].append(hit)
    for several in hits.values():
        several.sort(key=_order)
    return Contamination(
        threshold=threshold,
        hits=tuple(hits["same"]),
        undecided=tuple(hits[""]),
        rejected=tuple(hits["different"]),
        problems=Counter((one.source, splits.get(one.id, "")) for one in here),
        test_problems={name: len(several) for name, several in sets.items()},
    )


def _order(hit: Hit) -> tuple[Any, ...]:
    return (-hit.similarity, -(hit.cosine or 0), hit.source, hit.problem_id, hit.test_set, hit.test_id)


def _kept(
    pairs: Iterable[tuple[int, int, float]], threshold: float, names: Sequence[str]
) -> dict[Pair, float]:
    """The pairs that are listed, and their similarity: of a template there can be millions.

    From the threshold, the nearest of each problem in each set, and of each test problem. Below it, the three nearest
    of each test problem.
    """
    best: dict[object, tuple[float, int, int]] = {}
    below: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    for at, to, value in pairs:
        if value < threshold:
            insort(below[to], (-value, at))
            del below[to][NEAREST:]
        else:
            one = (-value, at, to)
            for key in ((at, names[to]), to):
                best[key] = min(best.get(key, one), one)
    found = {(at, to): -value for value, at, to in best.values()}
    return found | {(at, to): -value for to, several in below.items() for value, at in several}


def _by_embedding(here: Sequence[Problem], there: Sequence[Problem], endpoint: Endpoint) -> dict[Pair, float]:
    """The nearest problem of the run for each test problem, and the cosine; the most similar first."""
    from pv_data.duplicates.embeddings import embed, nearest

    if not here or not there:
        return {}
    both = embed([one.text for one in [*here, *there]], endpoint)
    return {(at, to): cosine for at, to, cosine in nearest(both[: len(here)], both[len(here) :])}


def _places(
    here: Sequence[Problem], there: Sequence[Problem], decisions: Mapping[tuple[str, str], str]
) -> dict[Pair, str]:
    """Decisions by the places of both problems; those of problems that are not there count for nothing."""
    places = {problem.id: at for at, problem in enumerate(here)}
    of_test: defaultdict[str, list[int]] = defaultdict(list)
    for to, problem in enumerate(there):
        of_test[problem.id].append(to)
    return {
        (places[one], to): decision
        for (one, test), decision in decisions.items()
        if one in places
        for to in of_test.get(test, ())
    }


def _hit(
    problem: Problem, name: str, test: Problem, value: float, spelt: Callable[[str], dict[str, str]]
) -> Hit:
    one, other = spelt(problem.text), spelt(test.text)
    return Hit(
        source=problem.source,
        problem_id=problem.id,
        native_id=problem.native_id,
        test_set=name,
        test_problem_id=test.id,
        test_id=test.native_id,
        similarity=value,
        text=problem.text,
        test_text=test.text,
        shared=_shown(text for feature, text in one.items() if feature in other),
        only_here=_shown(text for feature, text in one.items() if feature not in other),
        only_there=_shown(text for feature, text in other.items() if feature not in one),
    )


def _shown(texts: Iterable[str]) -> str:
    """Formulas, words and numbers in a row, the longest first, without those that are a part of another."""
    shown: list[str] = []
    length = 0
    for text in sorted(dict.fromkeys(texts), key=len, reverse=True):
        if text and length < WHY and not any(text in other for other in shown):
            shown.append(text[:WHY])
            length += len(text) + 2
    return "; ".join(shown)


def problems_of(source: str, path: Path, **options: Any) -> Iterator[Problem]:
    """The problems of a test set, by the adapter of this name; what the adapter sets aside is left out.

    Raises:
        ConfigError: there is no such source, or an option that it does not take.
        DataError: the file, or one of the folder, is none of this source: what is in it would not be looked for.
    """
    from pv_data.sources.opening import open_source

    return _problems(open_source(source, path, options))


def _problems(rows: Iterable[Problem | Proof | Aside]) -> Iterator[Problem]:
    for row in rows:
        if isinstance(row, Problem):
            yield row
        elif isinstance(row, Aside) and row.reason == FILE_NOT_READ:
            raise DataError(
                f"{row.detail}. Correct the file {row.row}, or remove it from the test set's folder"
            )
