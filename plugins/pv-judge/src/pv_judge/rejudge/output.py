"""Output of a replay: tables on a terminal, JSON, and row by row as Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from pv_judge.agreement import Estimate
from pv_judge.files import write_atomically
from pv_judge.pages.blocks import Block, Column, Paragraph, Table
from pv_judge.pages.text import MISSING, coefficient, estimate, percent, plural
from pv_judge.pages.writing import to_json
from pv_judge.rejudge.report import MarkRates, Report, RewardLine
from pv_judge.rejudge.rows import Judgment, OldRow

__all__ = ["document", "marks_table", "report_blocks", "write_report"]

OLD = ("fluent", "vetoed", "not asked", "failed", "unjudged")
NEW = ("fluent", "vetoed", "failed", "unjudged")

Value: TypeAlias = "Callable[[OldRow, Report, Judgment], Any]"
PARQUET: Mapping[str, tuple[str, Value]] = {
    "row_id": ("string", lambda row, report, new: row.row_id),
    "uid": ("string", lambda row, report, new: row.uid),
    "session": ("int64", lambda row, report, new: row.session),
    "step": ("int64", lambda row, report, new: row.step),
    "old_decision": ("string", lambda row, report, new: row.decision),
    "decided_by": ("string", lambda row, report, new: row.decided_by),
    "old_fluent": ("bool", lambda row, report, new: row.judge_fluent),
    "old_confidence": ("float64", lambda row, report, new: row.confidence),
    "old_reward": ("float64", lambda row, report, new: row.reward),
    "new_decision": ("string", lambda row, report, new: report.decisions[row.row_id]),
    "new_fluent": ("bool", lambda row, report, new: new.fluent),
    "new_confidence": ("float64", lambda row, report, new: new.confidence),
    "new_text": ("string", lambda row, report, new: new.text),
    "failure": ("string", lambda row, report, new: new.failure),
    "new_reward": ("float64", lambda row, report, new: report.new_rewards.get(row.row_id)),
    "reward_known": ("bool", lambda row, report, new: row.row_id in report.new_rewards),
    "human": ("bool", lambda row, report, new: row.human),
}
"""Type and value of each column of the rows."""


def report_blocks(report: Report) -> Iterator[Block]:
    """Everything that a terminal shows."""
    if report.by_rules:
        yield Paragraph(
            f"Vetoed by rules, which run first; not judged again: {plural(report.by_rules, 'row')}."
        )
    yield _confusion(report)
    found = report.agreement
    yield Paragraph(
        f"Decided by both judges: {plural(found.number, 'row')}. Agreement {_share(found.raw)}, "
        f"kappa {_number(found.kappa)}, AC1 {_number(found.ac1)}."
    )
    for kind, number in sorted(report.failures.items()):
        yield Paragraph(f"No answer from the new judge, {kind}: {plural(number, 'row')}.")
    if report.old_marks is not None and report.new_marks is not None:
        yield marks_table({"old": report.old_marks, "new": report.new_marks})
    yield from _rewards(report)
    yield Paragraph(
        f"\nCost: {_dollars(report.usd)} for {plural(report.requests, 'request')}, {report.prompt_tokens} prompt and "
        f"{plural(report.completion_tokens, 'answer token')}; {report.cached} answers were from the cache. "
        f"The old judge cost {_dollars(report.old_usd)}."
    )
    yield Paragraph("95% intervals: of rates by Wilson's score, of the others by a bootstrap over prompts.")


def marks_table(marks: Mapping[str, MarkRates]) -> Table:
    """A line for each name: decisions against human marks."""
    columns: list[Column[tuple[str, MarkRates]]] = [
        Column("against marks", lambda row: row[0], left=True),
        Column("true positives", lambda row: _rate(row[1].found, row[1].true_positive)),
        Column("false positives", lambda row: _rate(row[1].wrong, row[1].false_positive)),
        Column("kappa", lambda row: _number(row[1].agreement.kappa)),
        Column("AC1", lambda row: _number(row[1].agreement.ac1)),
    ]
    return Table.of(columns, marks.items())


def document(report: Report, about: Mapping[str, Any]) -> dict[str, Any]:
    """All numbers but those of single rows, after those of `about`."""
    values = asdict(report)
    del values["decisions"], values["new_rewards"]
    values["confusion"] = [
        {"old": old, "new": new, "rows": number} for (old, new), number in sorted(report.confusion.items())
    ]
    return {**about, **values}


def write_report(
    path: Path,
    report: Report,
    rows: Sequence[OldRow],
    judgments: Mapping[str, Judgment],
    about: Mapping[str, Any],
) -> None:
    """The report to a .json file; the rows to any other, as Parquet, with the report as metadata `pv_rl.rejudge`."""
    text = to_json(document(report, about))
    if path.suffix == ".json":
        write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [(name, pa.type_for_alias(kind)) for name, (kind, _) in PARQUET.items()],
        metadata={"pv_rl.rejudge": text.rstrip()},
    )
    values = [
        {
            name: value(row, report, judgments.get(row.row_id, Judgment()))
            for name, (_, value) in PARQUET.items()
        }
        for row in rows
    ]
    table = pa.Table.from_pylist(values, schema)
    write_atomically(path, lambda file: pq.write_table(table, file, compression="zstd"))


def _confusion(report: Report) -> Table:
    shown = [name for name in NEW if any(new == name for _, new in report.confusion)]
    columns: list[Column[str]] = [
        Column("old \\ new", lambda old: old, left=True),
        *(Column(new, lambda old, new=new: str(report.confusion.get((old, new), 0))) for new in shown),
    ]
    return Table.of(columns, [old for old in OLD if any(old == one for one, _ in report.confusion)])


def _rewards(report: Report) -> Iterator[Block]:
    def show(value: float | None, sign: str = "") -> str:
        return MISSING if value is None else f"{value:{sign}.4f}"

    def change(line: RewardLine) -> float | None:
        return None if line.old_mean is None or line.new_mean is None else line.new_mean - line.old_mean

    columns: list[Column[tuple[str, RewardLine]]] = [
        Column("mean reward", lambda row: row[0], left=True),
        Column("rows", lambda row: str(row[1].rows)),
        Column("old", lambda row: show(row[1].old_mean)),
        Column("new", lambda row: show(row[1].new_mean)),
        Column("change", lambda row: show(change(row[1]), "+")),
        Column("rows that change", lambda row: str(row[1].changed)),
    ]
    yield Table.of(columns, report.rewards.items())
    everything = report.rewards.get("all")
    if everything is not None and everything.old_rewarded + everything.new_rewarded < 2 * everything.rows:
        yield Paragraph(
            f"Means are over rows with a reward: {everything.old_rewarded} old, {everything.new_rewarded} new."
        )
    unknown = report.rows - len(report.new_rewards)
    if unknown:
        yield Paragraph(
            "Left out, because the new judge failed or the ledger does not have their reward without a veto: "
            f"{plural(unknown, 'row')}."
        )


def _dollars(usd: float | None) -> str:
    return "dollars unknown (a model has no price)" if usd is None else f"${usd:.4f}"


def _rate(counts: tuple[int, int], rate: Estimate) -> str:
    return f"{counts[0]} of {counts[1]}: {_share(rate)}"


def _share(found: Estimate) -> str:
    """`68.7% (65.8 to 71.2)`."""
    if found.value is None:
        return MISSING
    value, _, interval = estimate(found.value, found.low, found.high, percent).partition(" ")
    return f"{value}% {interval}".rstrip()


def _number(found: Estimate) -> str:
    return estimate(found.value, found.low, found.high, coefficient)
