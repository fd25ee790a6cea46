"""Form of a table: builds a row's problem, references and proofs from the columns that a config names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pv_data.records import GROUND_TRUTH, OTHER_LABEL, Aside, Problem, Proof, is_name
from pv_data.sources.reading.assemble import REFERENCE, attempt, reference
from pv_data.sources.reading.chat import said
from pv_data.sources.reading.columns import check_columns, columns_of, native_id, paths_of, renamed
from pv_data.sources.reading.cutting import Template
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.label_map import LabelMap
from pv_data.sources.reading.paths import EACH, Each
from pv_data.sources.reading.unusable import Unusable, aside
from pv_rl.errors import ConfigError

__all__ = ["MEANINGS", "Form", "without_thoughts"]

OWN_NAME = (
    "problem",
    "proof",
    "label",
    "model",
    "id",
    "answer",
    "subject",
    "language",
    "licence",
    "url",
    "split",
)
"""Meanings that a column has by its name alone."""
MEANINGS = (*OWN_NAME, "steps", "reference")
SEVERAL = ("proof", "steps", "label", "model", "reference")
"""What a path with `[]` can give."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """The options of `table.read`, checked.

    Raises:
        ConfigError: one that cannot be.
    """

    columns: Mapping[str, Any]
    cut: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, bool | None] | None = None
    thinking: str = "keep"
    references: bool = True
    source: str = "table"
    method: str = "proof"
    licence: str = ""
    language: str = ""
    known_by: str = "table"

    def __post_init__(self) -> None:
        if not is_name(self.source) or not is_name(self.method):
            wrong = f"source={self.source!r}" if not is_name(self.source) else f"method={self.method!r}"
            raise ConfigError(f"{wrong}; it is a word or two, without /, [ and ]")
        if not self.known_by or "/" in self.known_by:
            raise ConfigError(f"known_by={self.known_by!r}; it is a word or two, without a slash")
        if self.thinking not in ("keep", "remove"):
            raise ConfigError(f"thinking={self.thinking!r}; it is keep or remove")
        check_columns(self.columns, MEANINGS)
        if not isinstance(self.cut, Mapping) or not all(isinstance(one, str) for one in self.cut.values()):
            raise ConfigError(f"cut={self.cut!r:.200}; it maps a column to a template")
        self._check_places()

    @cached_property
    def _label_map(self) -> LabelMap:
        return LabelMap(self.labels)

    @cached_property
    def _templates(self) -> dict[str, Template]:
        return {path: Template(text, MEANINGS) for path, text in self.cut.items()}

    def _check_places(self) -> None:
        _ = self._label_map
        places = [(name, path) for name, paths in self.columns.items() for path in paths_of(paths)]
        cut = [(name, path) for path, one in self._templates.items() for name in one.names if name]
        names = [*self.columns, *(name for name, _ in cut)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"columns and cut both give {', '.join(twice)}; take it out of one of them")
        if {"proof", "steps"} <= set(names):
            raise ConfigError("columns: proof and steps are both given; steps are texts that make one proof")
        several = {name for name, path in [*places, *cut] if EACH in path}
        if wrong := sorted(several.difference(SEVERAL)):
            raise ConfigError(f"columns: {wrong[0]} has one value a row, and a path with [] gives several")
        if several & {"label", "model"} and not several & {"proof", "steps"}:
            raise ConfigError("columns: label or model has a path with [], so proof or steps needs one too")

    def fits(self, made: Problem | Proof) -> bool:
        """Whether it shows that the options fit the file: a proof, where they name one."""
        named = {*self.columns, *(name for one in self._templates.values() for name in one.names)}
        return made.kind == "proof" and made.method == self.method if named & {"proof", "steps"} else True

    def rows(self, row: Fields) -> Iterator[Problem | Proof | Aside]:
        """The problem, then references and proofs. Of several proofs one that cannot be used is set aside alone.

        Raises:
            Unusable: the row cannot be used.
        """
        found = renamed(row, self.columns, OWN_NAME, needed=(), cut=self._templates).values
        if "problem" not in found:
            raise Unusable(
                "missing: problem",
                f"the row has {columns_of(row)}; name its column with --column problem=NAME, or in a config with "
                "options: {columns: {problem: NAME}}",
            )
        base = Fields(
            where=row.where, values={k: one for k, one in found.items() if not isinstance(one, Each)}
        )
        problem = self._problem(base)
        yield problem
        if self.references and found.get("reference") is not None:
            given = found["reference"]
            for number, text in enumerate(given if isinstance(given, Each) else [given]):
                place = f"[{number}]" if isinstance(given, Each) else ""
                one = Fields(where=f"{row.where}:reference{place}", values={"reference": text})
                yield attempt(one.where, lambda one=one: reference(problem, _text(one, "reference")))
        each = {k: one for k, one in found.items() if isinstance(one, Each) and k != "reference"}
        if each:
            yield from self._several(problem, base, each)
        elif any(found.get(name) is not None or self._needs(name) for name in ("proof", "steps")):
            yield self._proof(problem, base)

    def _needs(self, name: str) -> bool:
        return name in self.columns and not self.columns[name].endswith("?")

    def _problem(self, row: Fields) -> Problem:
        return Problem(
            source=self.source,
            native_id=native_id(row),
            text=_text(row, "problem"),
            answer=_answer(row),
            subject=row.optional("subject"),
            language=row.optional("language") or self.language,
            licence=row.optional("licence") or self.licence,
            url=row.optional("url"),
            split=_split(row),
        )

    def _several(self, problem: Problem, base: Fields, each: Mapping[str, Each]) -> Iterator[Proof | Aside]:
        lengths = {name: len(value) for name, value in each.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise Unusable(
                "lists of unequal length", f"the row has {counts}, so whose label is whose is unclear"
            )
        label = base.values.get("label")
        if "label" not in each and any(
            one is not None for one in (label if isinstance(label, list) else [label])
        ):
            raise Unusable(
                "no label: label", f"one label, {str(label)[:60]!r}, for several proofs; give one for each"
            )
        made = list[Proof | Aside]()
        for number in range(max(lengths.values())):
            one = {name: value[number] for name, value in each.items()}
            item = Fields(where=f"{base.where}[{number}]", values={**base.values, **one})
            made.append(attempt(item.where, lambda item=item: self._proof(problem, item)))
        labels: dict[str, set[bool | None]] = {}
        for proof in made:
            if isinstance(proof, Proof):
                labels.setdefault(proof.id, set()).add(proof.known)
        for number, proof in enumerate(made):
            if isinstance(proof, Proof) and len(labels[proof.id]) > 1:
                yield aside(f"{base.where}[{number}]", OTHER_LABEL, "both are rejected", proof.text)
            else:
                yield proof

    def _proof(self, problem: Problem, row: Fields) -> Proof:
        if lost := [one for one in row.values.values() if isinstance(one, Unusable)]:
            raise lost[0]
        text = row.steps("steps") if "steps" in row.values else _text(row, "proof")
        known = self._label(row)
        is_reference = self.method == GROUND_TRUTH and row.values.get("label") is None
        return Proof(
            problem_id=problem.id,
            source=problem.source,
            method=self.method,
            model=row.optional("model"),
            text=without_thoughts(text) if self.thinking == "remove" else text,
            known=True if is_reference else known,
            known_by=REFERENCE if is_reference else "" if known is None else self.known_by,
        )

    def _label(self, row: Fields) -> bool | None:
        if "label" not in row.values:
            return None
        columns = paths_of(self.columns.get("label", "label"))
        values = (
            row.values["label"]
            if len(columns) > 1 and row.values["label"] is not None
            else [row.values["label"]]
        )
        found = {self._label_map.meaning(one, name) for name, one in zip(columns, values, strict=False)} - {
            None
        }
        if len(found) == 2:
            raise Unusable("no label: label", f"{' and '.join(columns)} disagree")
        return found.pop() if found else None


def _text(row: Fields, key: str) -> str:
    value = row.values.get(key)
    if isinstance(value, Unusable):
        raise value
    if value is not None:
        value = said(value, "user" if key == "problem" else "assistant", key)
        if isinstance(value, list) and key != "problem":
            raise Unusable(
                f"not text: {key}",
                "the column holds a list; for the steps of one proof name it `steps`, for several write NAME[]",
            )
        row = Fields(where=row.where, values={**row.values, key: value})
    return row.text(key)


def without_thoughts(text: str) -> str:
    """What follows `</think>`; the whole of a text without thoughts.

    Raises:
        Unusable: it is unclear where the thoughts end, or nothing follows them.
    """
    *thoughts, rest = text.split("</think>")
    rest = rest.strip()
    for number, thought in enumerate(thoughts):  # the template of a prompt may have opened the first
        before, opened, _ = thought.partition("<think>")
        if before.strip() and (opened or number):
            raise Unusable(
                "text before thoughts: proof", "there is text before <think> or between two </think>"
            )
    if "<think>" in rest:
        raise Unusable("thoughts without an end: proof", "there is no </think> behind the last <think>")
    if not rest:
        raise Unusable("empty: proof", "there is nothing behind </think>")
    return rest


def _answer(row: Fields) -> str:
    """A text that may be blank, or a number."""
    value = row.values.get("answer")
    if isinstance(value, float) and not value.is_integer():
        return str(row.number("answer"))
    return row.optional("answer") if value is None or isinstance(value, str) else row.name("answer")


def _split(row: Fields) -> str:
    split = row.optional("split")
    if split not in ("", "train", "test"):
        raise Unusable("split", f"split is {split[:60]!r}; it is train, test or nothing")
    return split
