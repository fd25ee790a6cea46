"""Contamination report: which problems of a run are in named test sets, or nearly (`pv-data contamination`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from pv_data.duplicates.clusters import Nearby
from pv_data.records import Aside, Problem, Proof
from pv_data.shell import errors_to_exit
from pv_data.sources.reading.unusable import FILE_NOT_READ
from pv_judge.pages.blocks import Block, Column, Paragraph, Table
from pv_judge.pages.markdown import to_markdown
from pv_judge.pages.text import plain
from pv_rl.errors import DataError

__all__ = ["Contamination", "Hit", "contamination", "contamination_command", "problems_of"]


SHOWN = 100
"""Characters of a problem in the Markdown."""
LISTED = 50
"""Pairs in the Markdown; the rows have all."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A problem of the run and one of a test set that is near it."""

    source: str
    problem_id: str
    native_id: str
    test_set: str
    test_id: str
    """What the test set calls it."""
    similarity: float
    """Jaccard, from the threshold to 1."""
    text: str
    test_text: str


@dataclass(frozen=True, kw_only=True)
class Contamination:
    """The report."""

    threshold: float
    hits: tuple[Hit, ...]
    """The most similar first."""
    problems: Mapping[str, int]
    """Problems of the run by source."""
    test_problems: Mapping[str, int]
    """Problems by test set."""

    def counts(self) -> Counter[tuple[str, str]]:
        """Problems of the run that are near one of the set, by source and set."""
        pairs = {(hit.source, hit.test_set, hit.problem_id) for hit in self.hits}
        return Counter((source, name) for source, name, _ in pairs)

    def rows(self) -> list[dict[str, Any]]:
        """The pairs as plain values."""
        return [asdict(hit) for hit in self.hits]

    def to_markdown(self) -> str:
        """Counts by source and set, and the nearest pairs."""
        return to_markdown(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        counts = self.counts()
        by_source: list[Column[str]] = [
            Column("source", plain, left=True),
            Column("problems", lambda source: str(self.problems[source])),
            *(
                Column(f"{plain(one)} ({number})", lambda source, one=one: str(counts[source, one]))
                for one, number in sorted(self.test_problems.items())
            ),
        ]
        yield Paragraph(
            f"Problems of the run with a Jaccard similarity of at least {self.threshold:g} to one of a test set."
        )
        yield Table.of(by_source, sorted(self.problems))
        if not self.hits:
            yield Paragraph("No pair was found.")
            return
        yield Table.of(PAIRS, self.hits[:LISTED])
        if len(self.hits) > LISTED:
            yield Paragraph(f"And {len(self.hits) - LISTED} more pairs.")


PAIRS: tuple[Column[Hit], ...] = (
    Column("similarity", lambda hit: f"{hit.similarity:.2f}"),
    Column("problem", lambda hit: plain(f"{hit.source} {hit.native_id}", SHOWN), left=True),
    Column("test set", lambda hit: plain(f"{hit.test_set} {hit.test_id}", SHOWN), left=True),
    Column("text", lambda hit: plain(hit.text, SHOWN), left=True),
    Column("text there", lambda hit: plain(hit.test_text, SHOWN), left=True),
)


def contamination(
    problems: Iterable[Problem], test_sets: Mapping[str, Iterable[Problem]], *, threshold: float = 0.5
) -> Contamination:
    """Look for each problem in the test sets. The sets are held in memory, the problems are not.

    Args:
        problems: of the run.
        test_sets: by name; `problems_of` reads one from a file.
        threshold: Jaccard similarity from which a pair is listed; lower than for clusters, as a person looks at it.
    """
    index, known, sizes = Nearby(threshold), dict[str, tuple[str, Problem]](), Counter[str]()
    for name, several in test_sets.items():
        sizes[name] = 0
        for one in several:
            key = f"{name}\n{one.id}"
            if key not in known:
                known[key] = (name, one)
                sizes[name] += 1
                index.add(key, one.text)
    hits, seen = list[Hit](), Counter[str]()
    for problem in problems:
        seen[problem.source] += 1
        hits += [_hit(problem, *known[key], value) for key, value in index.near(problem.text)]
    hits.sort(key=lambda hit: (-hit.similarity, hit.source, hit.problem_id, hit.test_set, hit.test_id))
    return Contamination(
        threshold=threshold, hits=tuple(hits), problems=dict(seen), test_problems=dict(sizes)
    )


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


def _hit(problem: Problem, name: str, there: Problem, value: float) -> Hit:
    return Hit(
        source=problem.source,
        problem_id=problem.id,
        native_id=problem.native_id,
        test_set=name,
        test_id=there.native_id,
        similarity=value,
        text=problem.text,
        test_text=there.text,
    )


def contamination_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of pv-data run.")],
    against: Annotated[
        list[str], typer.Option(help="Test set as KIND:PATH, where KIND is a source. Can be repeated.")
    ],
    out: Annotated[Path | None, typer.Option(help="Markdown file; the terminal if not given.")] = None,
    threshold: Annotated[float, typer.Option(help="Jaccard similarity from which a pair is listed.")] = 0.5,
) -> None:
    """List the problems of a run that are in named test sets, or nearly."""
    from pv_data.run.manifest import check_run
    from pv_data.table import read_rows
    from pv_judge.files import write_atomically
    from pv_rl.errors import ConfigError

    with errors_to_exit():
        check_run(run)
        sets = {}
        for one in against:
            kind, found, path = one.partition(":")
            if not found:
                raise ConfigError(f"--against {one}: give KIND:PATH, for example processbench:gsm8k.jsonl")
            sets[f"{kind} {Path(path).name}"] = problems_of(kind, Path(path))
        text = contamination(read_rows(run / "problems", Problem), sets, threshold=threshold).to_markdown()
        if out is None:
            typer.echo(text)
        else:
            write_atomically(out, lambda file: file.write_text(text, encoding="utf-8"))
