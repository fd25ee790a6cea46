"""Contamination check: questions of a set that were trained on, by problem id, same text or near-duplicate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pv_data.splits import text_key
from pv_eval.sets.base import EvalSet
from pv_eval.sets.rows import read_rows
from pv_eval.sets.sources import triples_of
from pv_eval.sets.values import text_of
from pv_judge.files import load_json
from pv_rl.errors import ConfigError, DataError

__all__ = ["ACTIONS", "Overlap", "Trained", "find_overlap", "settle", "trained_on"]

ACTIONS = ("refuse", "drop", "keep")
SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Problems of a training set."""

    ids: frozenset[str]
    texts: Mapping[str, str]
    """Text by `text_key`; empty for a verl file without the problem's text."""


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Questions of a set that were trained on, and how each was found."""

    questions: Mapping[str, str]
    """`question_id` to `problem id`, `same text` or `near-duplicate`."""
    pairs: int

    def __str__(self) -> str:
        by = {how: list(self.questions.values()).count(how) for how in sorted(set(self.questions.values()))}
        how = ", ".join(f"{number} by {word}" for word, number in by.items())
        examples = ", ".join(sorted(self.questions)[:SHOWN])
        return f"{self.pairs} pairs of {len(self.questions)} questions were trained on ({how}; {examples})"


def trained_on(path: Path) -> Trained:
    """The problems of a run's training triples, of a verl parquet file (`extra_info.problem_id`), or of a plain file
    with a column problem or question.

    Raises:
        DataError: the file names no problem.
    """
    ids: set[str] = set()
    texts: dict[str, str] = {}
    for problem_id, text in _problems(path):
        if problem_id:
            ids.add(problem_id)
        if text:
            texts[text_key(text)] = text
    if not ids and not texts:
        raise DataError(
            f"{path} names no problem: it has neither a column problem or question, nor problem_id, nor "
            "extra_info.problem_id. Give the training set's run, its verl parquet file or a plain file"
        )
    return Trained(ids=frozenset(ids), texts=texts)


def _problems(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        yield from ((row.problem_id, row.problem) for row in triples_of(path) if row.split == "train")
        return
    for _, row in read_rows(path):
        extra = _mapping(row.get("extra_info"))
        found = row.get("problem_id") or extra.get("problem_id") or ""
        if row.get("split") in (None, "", "train"):
            yield str(found), text_of(row.get("problem") or row.get("question")) or ""


def _mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = load_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def find_overlap(found: EvalSet, trained: Trained) -> Overlap:
    """Questions of the set that are among the trained ones."""
    by_question: dict[str, str] = {}
    asked: dict[str, str] = {}
    for pair in found.pairs:
        asked.setdefault(pair.question_id, pair.question)
        if found.problem_ids.get(pair.question_id, frozenset()) & trained.ids:
            by_question[pair.question_id] = "problem id"
        elif text_key(pair.question) in trained.texts:
            by_question.setdefault(pair.question_id, "same text")
    near = _near({name: text for name, text in asked.items() if name not in by_question}, trained)
    by_question |= dict.fromkeys(near, "near-duplicate")
    pairs = sum(pair.question_id in by_question for pair in found.pairs)
    return Overlap(questions=by_question, pairs=pairs)


def _near(asked: Mapping[str, str], trained: Trained) -> set[str]:
    """Questions that are trained ones in other words."""
    from pv_data.duplicates import contamination
    from pv_data.records import Problem

    ours = (Problem(source="set", native_id=name, text=text) for name, text in asked.items())
    theirs = (Problem(source="trained", native_id=key, text=text) for key, text in trained.texts.items())
    return {hit.native_id for hit in contamination(ours, {"trained": theirs}).hits}


def settle(found: EvalSet, overlap: Overlap, action: str) -> EvalSet:
    """Refuse the set, drop the pairs, or keep them; what is kept or dropped is noted.

    Raises:
        DataError: the set is refused, or no pair of it is left.
        ConfigError: the action is unknown.
    """
    if action not in ACTIONS:
        raise ConfigError(f"--overlap is {action!r}; expected {', '.join(ACTIONS)}")
    if not overlap.questions:
        return replace(found, notes=(*found.notes, "No question of the set was trained on."))
    if action == "refuse":
        raise DataError(
            f"{overlap}, so a number on this set would not be one on unseen problems. Leave them out with --overlap "
            "drop, or keep them with --overlap keep; the report states it"
        )
    if action == "keep":
        return replace(found, notes=(*found.notes, f"{overlap}, and are in the set."))
    kept = {pair.pair_id for pair in found.pairs if pair.question_id not in overlap.questions}
    if not kept:
        raise DataError(f"{overlap}: that is the whole set, so nothing is left to evaluate")
    return found.only(kept, f"{overlap}, and are left out.", reason="trained on")
