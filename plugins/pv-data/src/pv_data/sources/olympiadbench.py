"""Source `olympiadbench`: competition problems with proofs (TP) or solutions with a final answer (OE).

He et al., 2024, https://github.com/OpenBMB/OlympiadBench, MIT. As published (JSON, Parquet), with id, subfield,
question, solution and final_answer; or with `solutions` and `split`, which is TP or OE.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pv_data.hookspecs import Read
from pv_data.records import Aside, Problem, Proof
from pv_data.sources.reading.assemble import assemble, attempt, reference
from pv_data.sources.reading.fields import Fields, checked
from pv_data.sources.reading.rows import TABLES
from pv_data.sources.reading.unusable import Unusable

__all__ = ["read"]

TYPES = {"Theorem proof": "TP", "Open-ended": "OE"}
"""What `question_type` says."""
SOURCES = {"TP": "OlympiadBench", "OE": "OlympiadBench-OE"}
"""As the paper's table calls them."""


def read(path: Path, *, split: Literal["", "TP", "OE"] = "", language: str = "en") -> Read:
    """Problems, and each of their solutions as a ground-truth proof. Problems with pictures are set aside.

    Args:
        path: a file, or a folder with files of both splits.
        split: the only one that is read.
        language: of the file, for the language filter; the set has English and Chinese files.
    """
    yield from assemble(path, TABLES, lambda row: _rows(row, split, language))


def _rows(row: Fields, wanted: str, language: str) -> Iterator[Problem | Proof | Aside]:
    split = _split(row)
    if wanted and split != wanted:
        return
    if row.optional("modality") == "Multimodal" or row.values.get("image_1") is not None:
        raise Unusable("picture", "the problem needs a picture")
    given = row.optional("source")
    problem = Problem(
        source=SOURCES[split],
        native_id=row.name("id"),
        text="\n\n".join(filter(None, (row.optional("context"), row.text("question")))),
        answer=_answer(row) if split == "OE" else "",
        subject=row.optional("subfield"),
        language=language,
        licence="MIT",
        url=f"OpenBMB/OlympiadBench {given}".strip(),
    )
    yield problem
    column = "solutions" if "solutions" in row.values else "solution"
    for number, text in enumerate(row.items(column)):
        one = Fields(where=f"{row.where}:{column}[{number}]", values={"solution": text})
        yield attempt(one.where, lambda one=one: reference(problem, one.text("solution")))


def _split(row: Fields) -> str:
    """By `split` or `question_type`; in the files of data.zip, which have neither, a proof has no final answer."""
    if "split" in row.values:
        split = row.text("split")
    elif "question_type" in row.values:
        split = TYPES.get(row.text("question_type"), row.text("question_type"))
    else:
        split = "OE" if row.values.get("final_answer") else "TP"
    if split not in SOURCES:
        raise Unusable("split", f"split is {split[:60]!r}; it is TP or OE")
    return split


def _answer(row: Fields) -> str:
    """The final answers; several are joined by `; `."""
    if row.values.get("final_answer") is None:
        return ""
    texts = [one for one in row.items("final_answer") if isinstance(one, str)]
    return checked("; ".join(text.strip() for text in texts), "final_answer")
