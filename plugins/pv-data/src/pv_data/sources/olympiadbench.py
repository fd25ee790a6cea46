"""Source `olympiadbench`: competition problems with proofs (TP) or solutions with a final answer (OE).

He et al., 2024, https://github.com/OpenBMB/OlympiadBench, MIT. JSON lines with id, subfield, question, solutions and
final_answer; `split` is TP or OE.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pv_data.hookspecs import Read
from pv_data.records import Aside, Problem, Proof
from pv_data.sources.reading.assemble import assemble, attempt, reference
from pv_data.sources.reading.fields import Fields, checked
from pv_data.sources.reading.unusable import Unusable

__all__ = ["read"]

SOURCES = {"TP": "OlympiadBench", "OE": "OlympiadBench-OE"}
"""As the paper's table calls them."""


def read(path: Path, *, language: str = "en") -> Read:
    """Problems, and each of their solutions as a ground-truth proof.

    Args:
        language: of the file, for the language filter; the set has English and Chinese files.
    """
    yield from assemble(path, (".jsonl",), lambda row: _rows(row, language))


def _rows(row: Fields, language: str) -> Iterator[Problem | Proof | Aside]:
    split = row.text("split")
    if split not in SOURCES:
        raise Unusable("split", f"split is {split[:60]!r}; it is TP or OE")
    given = row.optional("source")
    problem = Problem(
        source=SOURCES[split],
        native_id=row.name("id"),
        text=row.text("question"),
        answer=_answer(row) if split == "OE" else "",
        subject=row.optional("subfield"),
        language=language,
        licence="MIT",
        url=f"OpenBMB/OlympiadBench {given}".strip(),
    )
    yield problem
    for number, text in enumerate(row.items("solutions")):
        one = Fields(where=f"{row.where}:solutions[{number}]", values={"solution": text})
        yield attempt(one.where, lambda one=one: reference(problem, one.text("solution")))


def _answer(row: Fields) -> str:
    """The final answers; several are joined by `; `."""
    if row.values.get("final_answer") is None:
        return ""
    texts = [one for one in row.items("final_answer") if isinstance(one, str)]
    return checked("; ".join(text.strip() for text in texts), "final_answer")
