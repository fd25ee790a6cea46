"""Sets of pv-data: the triples of a run (`curated`, `style`), and the labelled proofs of a source by its name.

A proof of a source is a pair if the source knows whether it is right, its grade or its first wrong step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pv_data.records import GROUND_TRUTH, Aside, MarkedProof, Problem, Proof, Qpc
from pv_eval.sets.base import Candidate, EvalSet, LeftOut, build_set
from pv_eval.votes import Pair
from pv_rl.errors import ConfigError, DataError

__all__ = ["STYLES", "read_curated", "read_source", "read_style", "source_rows", "triples_of"]

SPLITS = ("test", "train", "all")
STYLES = {"forum": "math forum", "textbook": "textbook", "article": "research article"}
"""The paper's names of styles, by the word of the method that made them (`pv_data.methods`)."""


def read_curated(
    path: Path, *, split: str = "test", rule: str | None = None, name: str = "curated"
) -> EvalSet:
    """Triples of a run.

    Args:
        path: the run's folder, its table of triples, or one file of it.
        split: `test`, `train` or `all`.
        rule: keep only labels by this rule.
        name: of the set. The report shows the paper's numbers on its own set beside one with the name `curated`.
    """
    return build_set(name, _of_split(path, split), rule=rule)


def read_style(path: Path, *, split: str = "test", rule: str | None = None) -> EvalSet:
    """Triples whose proof was rewritten in a style, a slice a style; the others are left out."""
    return build_set("style", _of_split(path, split, styled=True), rule=rule)


def triples_of(path: Path) -> Iterator[Qpc]:
    """The triples of a run's folder, of its folder `export`, of a table or of one file."""
    from pv_data.table import parts, read_rows

    places = [path / "export" / "qpc", path / "qpc", path]
    table = path if path.is_file() else next((one for one in places if parts(one)), None)
    if table is None:
        made = (path / "proofs").is_dir()  # a run that stopped before its end has this folder
        raise DataError(
            f"{path} has no triples: export/qpc, qpc and {path.name} itself hold no .parquet file. "
            + (
                "The run is not finished: run `pv-data run` to its end"
                if made
                else "Give the folder of a run"
            )
        )
    yield from read_rows(table, Qpc)


def _of_split(path: Path, split: str, styled: bool = False) -> Iterator[Candidate | LeftOut]:
    if split not in SPLITS:
        raise ConfigError(f"split is {split!r}; expected {', '.join(SPLITS)}")
    for row in triples_of(path):
        part = _style(row) if styled else row.slice
        if split not in ("all", row.split):
            yield LeftOut(row=row.id, reason=f"split {row.split}")
        elif part is None:
            yield LeftOut(row=row.id, reason="in no style")
        else:
            pair = Pair(
                pair_id=row.proof_id,
                question_id=row.problem_id,
                label=row.label,
                slice=part,
                question=row.problem,
                proof=row.proof,
            )
            yield Candidate(pair=pair, rule=row.rule, problem_ids=frozenset({row.problem_id}))


def _style(row: Qpc) -> str | None:
    """A slice is SOURCE/METHOD/MODEL."""
    method = row.slice.partition("/")[2].partition("/")[0]
    return next((name for word, name in STYLES.items() if "style" in method and word in method), None)


def read_source(
    source: str, path: Path | None, *, name: str = "", references: bool = False, **options: Any
) -> EvalSet:
    """The labelled proofs of a source.

    Args:
        source: its name, as in the config of a run.
        path: its file or folder; None for a source that needs none.
        name: of the set; default the source's.
        references: whether proofs that came with their problem, and are right because of that, are pairs too. They are
            easy, and by default left out and counted.
        options: of the source.

    Raises:
        ConfigError: the source or an option is unknown.
        DataError: see `build_set`.
    """
    from pv_data.plugins import SOURCES
    from pv_data.sources.opening import open_source

    place = path or SOURCES.named(source).default_path
    if place is None:
        raise ConfigError(f"the set {source} needs a file: --set {source}:PATH")
    rows = source_rows(open_source(source, place, options), references=references)
    return build_set(name or source, list(rows))


def source_rows(
    read: Iterable[Problem | Proof | Aside], *, references: bool = False
) -> Iterator[Candidate | LeftOut]:
    """Pairs of the rows of a source. A row that the source rejects is left out under the source's reason.

    A pair shows the first reference proof of its problem that was read before it.
    """
    problems: dict[str, Problem] = {}
    proven: dict[str, str] = {}
    seen: set[str] = set()
    for row in read:
        if isinstance(row, Problem):
            problems[row.id] = row
        elif isinstance(row, Aside):
            yield LeftOut(row=row.row, reason=f"{row.stage}: {row.reason}")
        elif row.id in seen:
            yield LeftOut(row=row.id, reason="proof is there already")
        elif row.problem_id not in problems:
            yield LeftOut(row=row.id, reason="no problem")
        elif row.method == GROUND_TRUTH and not references:
            proven.setdefault(row.problem_id, row.text)
            yield LeftOut(row=row.id, reason="reference proof")
        else:
            seen.add(row.id)
            one = _candidate(row, problems[row.problem_id])
            yield replace(one, pair=replace(one.pair, reference=proven.get(row.problem_id, "")))


def _candidate(proof: Proof, problem: Problem) -> Candidate:
    # A reference proof is right unless the source knows better.
    known = True if proof.known is None and proof.method == GROUND_TRUTH else proof.known
    marks = proof if isinstance(proof, MarkedProof) else None
    pair = Pair(
        pair_id=proof.id,
        question_id=problem.id,
        label=known,
        slice=proof.slice,
        question=problem.text,
        proof=proof.text,
        grade=marks.grade if marks else None,
        first_error=marks.first_error if marks else None,
        steps=marks.steps if marks else (),
    )
    rule = proof.known_by or ("reference proof" if proof.method == GROUND_TRUTH else "")
    return Candidate(pair=pair, rule=rule, problem_ids=frozenset({problem.id}))
