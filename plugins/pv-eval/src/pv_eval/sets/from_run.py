"""`curated` and `style`: triples of a pv-data run, by default those of its test split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pv_data.records import Qpc
from pv_eval.sets.base import Candidate, EvalSet, LeftOut, build_set
from pv_eval.votes import Pair
from pv_rl.errors import ConfigError, DataError

__all__ = ["STYLES", "read_curated", "read_style", "triples_of"]

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
        name: of the set. The paper's numbers on its own curated set go beside one that is called so.
    """
    _check_split(split)
    rows = (_in_split(row, split) for row in triples_of(path))
    return build_set(name, rows, rule=rule)


def read_style(path: Path, *, split: str = "test", rule: str | None = None) -> EvalSet:
    """Triples whose proof was rewritten in a style, a slice a style; the others are left out."""
    _check_split(split)
    rows = (_styled(row, split) for row in triples_of(path))
    return build_set("style", rows, rule=rule)


def triples_of(path: Path) -> Iterator[Qpc]:
    """The triples of a run, of a table or of one file."""
    from pv_data.table import parts, read_rows

    folder = path / "qpc" if (path / "qpc").is_dir() else path
    if not folder.is_file() and not parts(folder):
        raise DataError(
            f"{path} has no triples: neither a folder qpc with .parquet files, nor such files itself. Give the folder "
            "of a run that was split and exported"
        )
    yield from read_rows(folder, Qpc)


def _check_split(split: str) -> None:
    if split not in SPLITS:
        raise ConfigError(f"split is {split!r}; it is {', '.join(SPLITS)}")


def _in_split(row: Qpc, split: str) -> Candidate | LeftOut:
    if split not in ("all", row.split):
        return LeftOut(row=row.id, reason=f"split {row.split}")
    return _candidate(row, row.slice)


def _styled(row: Qpc, split: str) -> Candidate | LeftOut:
    if split not in ("all", row.split):
        return LeftOut(row=row.id, reason=f"split {row.split}")
    _, _, rest = row.slice.partition("/")
    method = rest.partition("/")[0]
    style = next((name for word, name in STYLES.items() if "style" in method and word in method), None)
    return LeftOut(row=row.id, reason="in no style") if style is None else _candidate(row, style)


def _candidate(row: Qpc, part: str) -> Candidate:
    pair = Pair(
        pair_id=row.proof_id,
        question_id=row.problem_id,
        label=row.label,
        slice=part,
        question=row.problem,
        proof=row.proof,
    )
    return Candidate(pair=pair, rule=row.rule, problem_ids=frozenset({row.problem_id}))
