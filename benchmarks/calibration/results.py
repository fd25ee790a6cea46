"""Tables of a result file, and the constants that it gives for the plan."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from calibration.rows import Row, read

PEAK = 989e12


def table(path: Path) -> str:
    """Markdown: a line a part; the last call of each case, which no first use of a kernel is in."""
    last = {(row.group, row.case, row.part): row for row in read(path) if row.predicted}
    lines = ["| shape | case | part | predicted | measured | ratio |", "|---|---|---|---|---|---|"]
    for row in last.values():
        shape = f"{row.shape}{' (held out)' if row.held_out else ''}"
        ratio = f"{row.ratio:.2f}" if row.ratio else ""
        lines.append(
            f"| {shape} | {row.group}, {row.case} | {row.part} | {row.predicted:.3g} | {row.measured:.3g} | {ratio} |"
        )
    return "\n".join(lines)


def fit(path: Path) -> str:
    """Each constant as the median of the cases that are not held out, with its range; then ratios of each part."""
    rows = [row for row in read(path) if row.part != "failed"]
    warm = list({(row.group, row.case, row.part): row for row in rows}.values())
    known: dict[str, list[tuple[float, bool, str]]] = defaultdict(list)
    for row in warm:
        for name, value in constants(row, warm):
            known[name].append((value, row.held_out, f"{row.shape} {row.case}"))
    lines = []
    for name, values in sorted(known.items()):
        used = [value for value, held_out, _ in values if not held_out]
        apart = [value for value, held_out, _ in values if held_out]
        shown = (
            f"median {median(used):.4g}, {min(used):.4g} to {max(used):.4g} of {len(used)}" if used else "-"
        )
        lines.append(f"{name}: {shown}; held out: {', '.join(f'{value:.4g}' for value in apart) or '-'}")
        lines += [
            f"    {value:.4g}  {where}{' (held out)' if held_out else ''}"
            for value, held_out, where in values
        ]
    ratios: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for row in warm:
        if row.ratio:
            ratios[row.part, row.held_out].append(row.ratio)
    lines.append("measured / predicted:")
    for (part, held_out), values in sorted(ratios.items()):
        lines.append(
            f"    {part}{' (held out)' if held_out else ''}: median {median(values):.3g}, "
            f"{min(values):.3g} to {max(values):.3g} of {len(values)}"
        )
    return "\n".join(lines)


def constants(row: Row, rows: list[Row]) -> list[tuple[str, float]]:
    """What a row tells of a constant, by the way that rows are computed."""
    detail = row.detail
    if row.part in ("old log-probs", "update") and "operations" in detail:
        kind = f"{detail['attention']}, {'packed' if detail['packed'] else 'padded'}"
        found = [(f"mfu of {row.part}, {kind}", useful(detail) / row.measured / PEAK)]
        if row.part == "old log-probs" and detail["padded"]:
            found.append(("padded / real tokens", detail["padded"] / detail["tokens"]))
        return found
    if row.part == "reference log-probs" and "micro_batches" in detail:
        old = [
            one for one in rows if (one.group, one.case, one.part) == (row.group, row.case, "old log-probs")
        ]
        if old:
            return [
                (
                    "s a micro-batch that the reference takes longer",
                    (row.measured - old[0].measured) / detail["micro_batches"],
                )
            ]
    if row.part == "decoding" and "step_ms" in detail:
        return [(f"ms of a decoding step, {detail['rows']} rows", detail["step_ms"])]
    return []


def useful(detail: dict[str, Any]) -> float:
    """Operations of real tokens and causal pairs; padding and masked pairs are no work."""
    operations = detail["operations"]
    return detail["passes"] * (operations["a_token"] * detail["tokens"] + operations["attention"])
