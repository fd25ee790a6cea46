"""Trial of a source: problems, proofs and rejected rows that it would read of a file, before a config is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from pv_data.plugins import SOURCES
from pv_data.records import GROUND_TRUTH, Problem, Proof
from pv_data.sources.opening import open_source
from pv_data.sources.reading.chat import role_of
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.files import files
from pv_data.sources.reading.rows import PLACE, TABLES, read_rows
from pv_judge.pages.blocks import Block, Column, Items, Paragraph, Table
from pv_judge.pages.text import counted
from pv_rl.errors import PvRlError

__all__ = ["Trial", "columns_block", "fitting_kinds", "trial"]

GIVEN = 20_000
"""Problems, proofs and rejected rows that are read at most."""
FEW = 100
"""As many decide which kinds of source read a file."""
WIDTH = 60
PLAIN = "table"


@dataclass(frozen=True)
class Line:
    place: str
    problem: str
    proof: str
    result: str


@dataclass
class Trial:
    """What was read."""

    kind: str
    path: Path
    options: Mapping[str, Any]
    lines: list[Line] = field(default_factory=list)
    """The first ones."""
    counts: Counter[str] = field(default_factory=Counter[str])
    rejected: Counter[str] = field(default_factory=Counter[str])
    """By reason."""
    whole: bool = True
    """Whether the file was read to its end."""

    @property
    def labelled(self) -> bool:
        """Whether a proof has a label."""
        return any(self.counts[what] for what in ("proofs right", "proofs wrong", "references"))

    def blocks(self) -> Iterator[Block]:
        """Rows, counts and the lines of a config."""
        columns: list[Column[Line]] = [
            Column("row", lambda line: line.place, left=True),
            Column("problem", lambda line: line.problem, left=True, wrap=True),
            Column("proof", lambda line: line.proof, left=True, wrap=True),
            Column("label", lambda line: line.result, left=True, wrap=True),
        ]
        yield Table.of(columns, self.lines)
        scope = "" if self.whole else f" in the first {GIVEN:,} problems, proofs and rejected rows"
        found = ", ".join(counted(count, what, ",") for what, count in self.counts.items()) or "nothing"
        yield Paragraph(f"\n{self.kind} reads{scope}: {found}")
        if self.rejected:
            yield Paragraph("Rejected:")
            yield Items([f"{count:,} {reason}" for reason, count in self.rejected.most_common()])

    def config(self) -> str:
        """The lines of a config that read the same."""
        entry: dict[str, Any] = {"kind": self.kind, "path": str(self.path)}
        if self.options:
            entry["options"] = dict(self.options)
        return yaml.safe_dump({"sources": [entry]}, sort_keys=False, allow_unicode=True, width=100)


def trial(kind: str, path: Path, options: Mapping[str, Any], *, shown: int, at_most: int = GIVEN) -> Trial:
    """Read a file as a config with this kind and these options would.

    Args:
        kind: of the source.
        path: a file or a folder.
        options: of the source.
        shown: lines that are kept.
        at_most: problems, proofs and rejected rows that are read.

    Raises:
        ConfigError: there is no such source, or an option that it does not take.
        DataError: no row is one of this source.
    """
    made = Trial(kind, path, options)
    asked, waiting = dict[str, tuple[str, str]](), list[tuple[str, str]]()
    PLACE.set("")
    rows = open_source(kind, path, options)

    def show(place: str, problem: str, proof: str, result: str) -> None:
        if len(made.lines) < shown:
            made.lines.append(Line(place, problem, proof, result))

    def alone() -> None:
        while waiting:  # a problem that has no proof gets a line of its own
            show(*waiting.pop(), "", "no proof")

    for row in islice(rows, at_most):
        if isinstance(row, Problem):
            alone()
            asked[row.id] = (row.native_id, _clipped(row.text))
            waiting.append((PLACE.get() or row.native_id, asked[row.id][1]))
            made.counts["problems"] += 1
        elif isinstance(row, Proof):
            waiting.clear()
            label = {True: "right", False: "wrong", None: "no label"}[row.known]
            made.counts["references" if row.method == GROUND_TRUTH else f"proofs {label}"] += 1
            name, problem = asked.get(row.problem_id, ("", ""))
            by = f" ({row.known_by})" if row.known_by else ""
            show(PLACE.get() or name, problem, _clipped(row.text), f"{label}{by}")
        else:
            problem = ""
            if waiting and waiting[0][0] == PLACE.get():  # of the problem's own row
                problem = waiting.pop()[1]
            alone()
            made.counts["rejected"] += 1
            made.rejected[row.reason] += 1
            why = f"rejected: {row.reason}{f' ({_clipped(row.detail, 200)})' if row.detail else ''}"
            show(row.row, problem, "", why)
    alone()
    made.whole = next(rows, None) is None
    return made


def fitting_kinds(path: Path) -> list[str]:
    """The kinds of source that read this file as it is, the one that reads most of it first, `table` after others."""
    found = list[tuple[tuple[bool, int, int], str]]()
    for kind, entry in SOURCES.entries().items():
        if entry.default_path is not None:
            continue
        try:
            one = trial(kind, path, {}, shown=0, at_most=FEW)
        except PvRlError:
            continue
        proofs = sum(count for what, count in one.counts.items() if what.startswith(("proofs", "references")))
        if not proofs + one.counts["problems"]:
            continue
        number, rejected = proofs + one.counts["problems"], one.counts["rejected"]
        # If every kind rejects every proof, `table` is first: its reasons name options that the user can set.
        rank = (proofs > 0, number - rejected, (kind != PLAIN) is (proofs > 0 or not rejected))
        found.append((rank, kind))
    # If a kind reads proofs, those that read only problems are left out.
    best = any(rank[0] for rank, _ in found)
    return [kind for rank, kind in sorted(found, reverse=True) if rank[0] or not best]


def columns_block(path: Path) -> Block | None:
    """The columns of the first row that can be read, with nested ones as paths; None where no file has one."""
    try:
        first = next(
            (row for one in files(path, TABLES)[:1] for row in read_rows(one) if isinstance(row, Fields)),
            None,
        )
    except PvRlError:
        return None
    if first is None:
        return None
    shape = list(islice(_shape(first.values), 60))
    columns: list[Column[tuple[str, str, str]]] = [
        Column(f"column of {first.where}", lambda one: one[0], left=True),
        Column("holds", lambda one: one[1], left=True),
        Column("for example", lambda one: one[2], left=True, wrap=True),
    ]
    return Table.of(columns, shape)


def _shape(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, dict) and depth < 10:
        for key, one in value.items():
            yield from _shape(one, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list) and value and depth < 10:
        if all(isinstance(one, dict) for one in value):
            roles = Counter(map(role_of, value))
            turns = value if "" not in roles else []
            for one in [turn for turn in turns if roles[role_of(turn)] == 1][:6]:
                content = one.get("content", one.get("value"))
                yield f"{path}[{role_of(one)}]", "turn of a chat", _clipped(str(content)[: 4 * WIDTH])
            several = "[]" if len(value) > 1 and "[]" not in path else "[0]"
            yield path, f"list of {len(value)} objects", ""
            yield from _shape(value[0], f"{path}{several}", depth + 1)
        else:
            yield path, f"list of {len(value)}, {type(value[0]).__name__}", _clipped(str(value[0]))
    else:
        yield path, type(value).__name__, _clipped(str(value) if not isinstance(value, dict | list) else "")


def _clipped(text: str, width: int = WIDTH) -> str:
    text = " ".join(text[: 4 * width].split())
    return text if len(text) <= width else f"{text[: width - 1]}…"
