"""A report of a replay: on a terminal, as JSON, and row by row as Parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pv_judge.agreement import Estimate
from pv_judge.rejudge.report import MarkRates, Report
from pv_judge.rejudge.rows import Judgment, OldRow
from pv_rl.files import write_atomically

__all__ = ["document", "print_marks", "print_report", "write_report"]

OLD = ("fluent", "vetoed", "not asked", "failed", "unjudged")
NEW = ("fluent", "vetoed", "failed", "unjudged")


def print_report(report: Report, console: Console) -> None:
    """Print all of it."""
    if report.by_rules:
        console.print(f"Vetoed by rules, which come first, and left so: {_rows(report.by_rules)}.")
    _print_confusion(report, console)
    found = report.agreement
    console.print(
        f"Decided by both judges: {_rows(found.number)}. Agreement {_share(found.raw)}, "
        f"kappa {_number(found.kappa)}, AC1 {_number(found.ac1)}."
    )
    for kind, number in sorted(report.failures.items()):
        console.print(f"Without an answer of the new judge, {kind}: {_rows(number)}.")
    if report.old_marks is not None and report.new_marks is not None:
        print_marks({"old": report.old_marks, "new": report.new_marks}, console)
    _print_rewards(report, console)
    console.print(
        f"\nCost: {_dollars(report.usd)} for {report.requests} requests, {report.prompt_tokens} prompt and "
        f"{report.completion_tokens} answer tokens; {report.cached} answers were known. "
        f"The old judge took {_dollars(report.old_usd)}."
    )
    console.print(
        "Intervals are of 95%: of rates by Wilson's score, of the others by a bootstrap over prompts."
    )


def print_marks(marks: Mapping[str, MarkRates], console: Console) -> None:
    """A line for each name: decisions against human marks."""
    table = _table("against marks", "true positives", "false positives", "kappa", "AC1")
    for name, rates in marks.items():
        table.add_row(
            name,
            f"{rates.found[0]} of {rates.found[1]}: {_share(rates.true_positive)}",
            f"{rates.wrong[0]} of {rates.wrong[1]}: {_share(rates.false_positive)}",
            _number(rates.agreement.kappa),
            _number(rates.agreement.ac1),
        )
    console.print(table)


def document(report: Report, about: Mapping[str, Any]) -> dict[str, Any]:
    """All numbers but those of single rows, after what `about` says."""
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
    """The report to a .json file; the rows to any other, as Parquet, with the report as metadata `pv_judge.rejudge`."""
    text = json.dumps(document(report, about), ensure_ascii=False)
    if path.suffix == ".json":
        write_atomically(path, lambda file: file.write_text(text + "\n", encoding="utf-8"))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "row_id": pa.string(),
        "uid": pa.string(),
        "session": pa.int64(),
        "step": pa.int64(),
        "old_decision": pa.string(),
        "decided_by": pa.string(),
        "old_fluent": pa.bool_(),
        "old_confidence": pa.float64(),
        "old_reward": pa.float64(),
        "new_decision": pa.string(),
        "new_fluent": pa.bool_(),
        "new_confidence": pa.float64(),
        "new_text": pa.string(),
        "failure": pa.string(),
        "new_reward": pa.float64(),
        "reward_known": pa.bool_(),
        "human": pa.bool_(),
    }
    values = [_values(row, report, judgments.get(row.row_id, Judgment())) for row in rows]
    table = pa.Table.from_pylist(values, pa.schema(types.items(), metadata={"pv_rl.rejudge": text}))
    write_atomically(path, lambda file: pq.write_table(table, file, compression="zstd"))


def _values(row: OldRow, report: Report, new: Judgment) -> dict[str, Any]:
    return {
        "row_id": row.row_id,
        "uid": row.uid,
        "session": row.session,
        "step": row.step,
        "old_decision": row.decision,
        "decided_by": row.decided_by,
        "old_fluent": row.judge_fluent,
        "old_confidence": row.confidence,
        "old_reward": row.reward,
        "new_decision": report.decisions[row.row_id],
        "new_fluent": new.fluent,
        "new_confidence": new.confidence,
        "new_text": new.text,
        "failure": new.failure,
        "new_reward": report.new_rewards.get(row.row_id),
        "reward_known": row.row_id in report.new_rewards,
        "human": row.human,
    }


def _print_confusion(report: Report, console: Console) -> None:
    columns = [name for name in NEW if any(new == name for _, new in report.confusion)]
    table = _table("old \\ new", *columns)
    for old in OLD:
        numbers = [report.confusion.get((old, new), 0) for new in columns]
        if any(numbers):
            table.add_row(old, *map(str, numbers))
    console.print(table)


def _print_rewards(report: Report, console: Console) -> None:
    table = _table("mean reward", "rows", "old", "new", "change", "rows that change")
    for name, line in report.rewards.items():
        old, new = line.old_mean, line.new_mean
        table.add_row(
            name,
            str(line.rows),
            "-" if old is None else f"{old:.4f}",
            "-" if new is None else f"{new:.4f}",
            "-" if old is None or new is None else f"{new - old:+.4f}",
            str(line.changed),
        )
    console.print(table)
    everything = report.rewards.get("all")
    if everything is not None and everything.old_rewarded + everything.new_rewarded < 2 * everything.rows:
        console.print(
            f"Means are over rows with a reward: {everything.old_rewarded} old, {everything.new_rewarded} new."
        )
    unknown = report.rows - len(report.new_rewards)
    if unknown:
        console.print(
            f"Not in it, since the new judge failed or the ledger does not say what they earn: {_rows(unknown)}."
        )


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left", no_wrap=True)
    return table


def _dollars(usd: float | None) -> str:
    return "dollars unknown (a model has no price)" if usd is None else f"${usd:.4f}"


def _rows(number: int) -> str:
    return f"{number} row" if number == 1 else f"{number} rows"


def _share(estimate: Estimate) -> str:
    if estimate.value is None:
        return "-"
    interval = (
        ""
        if estimate.low is None or estimate.high is None
        else f" ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"
    )
    return f"{100 * estimate.value:.1f}%{interval}"


def _number(estimate: Estimate) -> str:
    if estimate.value is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
