"""The report on labels as Markdown, as one HTML page that fetches nothing, and as JSON for a program."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from pv_data.report.labels import LabelReport, RuleQuality, SliceQuality
from pv_data.report.ratio import Ratio
from pv_judge.pages.blocks import Block, Grid, Heading, Items, Paragraph
from pv_judge.pages.markdown_file import to_markdown
from pv_judge.pages.text import plain
from pv_judge.pages.web_page import to_html
from pv_rl.files import write_together

__all__ = ["blocks", "write_label_report"]


def write_label_report(folder: Path, report: LabelReport, title: str = "Labels") -> None:
    """Write `labels.md`, `labels.html` and `labels.json`, all or none."""
    folder.mkdir(parents=True, exist_ok=True)
    content = list(blocks(report, title))
    data = json.dumps(asdict(report), ensure_ascii=False, indent=1) + "\n"
    texts = {
        "labels.md": to_markdown(content, ""),
        "labels.html": to_html(content, b""),
        "labels.json": data,
    }
    write_together({folder / name: text.encode("utf-8", "replace") for name, text in texts.items()})


def blocks(report: LabelReport, title: str) -> Iterable[Block]:
    """The parts of the report; names of slices and judges are from outside and cut to one printable line."""
    pooled = report.pooled
    yield Heading(plain(title))
    yield Paragraph(_summary(report))
    parts = [pooled, *report.slices] if len(report.slices) != 1 else list(report.slices)
    yield Heading("Labels against what is known")
    yield _labels(parts)
    yield Heading("Agreement of the judges")
    yield _agreement(parts)
    yield Heading("Each judge")
    yield _judges(parts)
    yield Heading("Each judge beside the others")
    yield _peers(parts)
    yield Heading("How to read this")
    yield Items(_notes(report))


def _summary(report: LabelReport) -> str:
    pooled = report.pooled
    rules = ", ".join(map(plain, report.run_rules)) or "none"
    text = f"{pooled.judged:,} proofs in {len(report.slices)} slices were judged; rule of the run: {rules}. "
    if not pooled.known_true + pooled.known_false:
        return text + "Of none it is known by itself whether it is right, so labels cannot be checked here."
    unanimous, majority, _ = pooled.rules
    return text + (
        f"Of {pooled.known_true + pooled.known_false:,} it is known whether they are right "
        f"({pooled.known_true:,} are). Unanimity keeps {_share(unanimous.kept)} of the proofs and its labels are true "
        f"in {_share(unanimous.right)}; majority keeps {_share(majority.kept)}, true in {_share(majority.right)}."
    )


def _labels(parts: list[SliceQuality]) -> Grid:
    heads = (
        *(("slice", ""), ("rule", ""), ("judged", ""), ("kept", "% of judged"), ("known", "right / wrong")),
        *((f"{what} of {label}", "%") for label in ("True", "False") for what in ("precision", "recall")),
    )
    lines = [
        [
            *(plain(part.slice), name, f"{part.judged:,}", _share(rule.kept)),
            f"{part.known_true:,} / {part.known_false:,}",
            *map(_cell, (rule.precision_true, rule.recall_true, rule.precision_false, rule.recall_false)),
        ]
        for part in parts
        for name, rule in _distinct(part.rules)
    ]
    return Grid(leading=2, heads=heads, lines=lines)


def _distinct(rules: Sequence[RuleQuality]) -> Iterable[tuple[str, RuleQuality]]:
    """Rules and their names; that of the run has no line of its own where it came to the same as another."""
    *others, own = rules
    same = [rule.rule for rule in others if replace(rule, rule=own.rule) == own]
    for rule in others:
        yield f"{rule.rule}, as this run" if rule.rule in same[:1] else rule.rule, rule
    if not same:
        yield own.rule, own


def _agreement(parts: list[SliceQuality]) -> Grid:
    heads = (
        *(
            ("slice", ""),
            ("proofs", "2 votes or more"),
            ("votes", "a proof"),
            ("agreement", "%"),
            ("Fleiss kappa", ""),
        ),
        *(("Krippendorff alpha", ""), ("Gwet AC1", ""), ("on True", "%"), ("on False", "%")),
    )
    lines = []
    for part in parts:
        found = part.agreement
        votes = f"{found.votes / found.items:.3g}" if found.items else "-"
        lines.append(
            [
                *(plain(part.slice), f"{found.items:,}", votes, _percent(found.raw)),
                *map(_number, (found.kappa, found.alpha, found.ac1)),
                *(_percent(found.on_true), _percent(found.on_false)),
            ]
        )
    return Grid(leading=1, heads=heads, lines=lines)


def _judges(parts: list[SliceQuality]) -> Grid:
    heads = (
        *(("slice", ""), ("judge", ""), ("votes", ""), ("accepts", "%"), ("true", "% of known")),
        *(("accepts right proofs", "%"), ("rejects wrong proofs", "%")),
    )
    lines = [
        [
            *(plain(part.slice), plain(judge.judge), f"{judge.accepts.number:,}", _share(judge.accepts)),
            *map(_cell, (judge.right, judge.on_right, judge.on_wrong)),
        ]
        for part in parts
        for judge in part.judges
    ]
    return Grid(leading=2, heads=heads, lines=lines)


def _peers(parts: list[SliceQuality]) -> Grid:
    heads = (
        *(("slice", ""), ("judge", ""), ("as most of the others", "% of votes"), ("left out", "others tied")),
        *(("Cohen kappa", ""), ("accepts what they accept", "%"), ("rejects what they reject", "%")),
        *(("its votes all alike", "% of proofs"), ("two of its votes", "% alike")),
    )
    lines = [
        [
            *(plain(part.slice), plain(judge.judge), _cell(found.with_others), f"{found.ties:,}"),
            *(_number(found.kappa), _cell(found.others_accept), _cell(found.others_reject)),
            *(_cell(found.alike), _percent(found.pairwise)),
        ]
        for part in parts
        for judge in part.judges
        for found in (judge.peers,)
    ]
    return Grid(leading=2, heads=heads, lines=lines)


def _notes(report: LabelReport) -> list[str]:
    return [
        "Precision of True: of the proofs that the rule labels True and whose truth is known, those that are right. "
        "Recall of True: of all right proofs that were judged, those that the rule labels True; a proof on which the "
        "judges disagree too much for a label is missed. False likewise.",
        f"Intervals in brackets are exact (Clopper-Pearson) at {report.confidence:.0%}, for independent proofs. "
        "Several proofs of one question are not quite, so the truth is a little less certain. A judge that voted more "
        "than once on a proof has no interval but where proofs are counted: its votes are not independent.",
        "Known is what the source says, or how the proof was made. A final answer that is right is no proof that all "
        "steps are: where labels are by final answer, a judge who rejects a bad way to it counts as wrong.",
        "Agreement: the chance that two votes on a proof are the same. Kappa and alpha fall to 0 where nearly all "
        "votes are alike; AC1 does not. Several votes of one model are not independent, and raise all of them. On "
        "True: given one vote for True, the chance that another is too.",
        "Beside the others: each vote of a judge against the majority of the votes of all other judges on the proof. "
        "Where they are split evenly, or there is no other, its votes are left out. Kappa is Cohen's, of the same "
        "pairs. All alike: proofs on which a judge that voted more than once said the same each time. A judge that "
        "agrees with the others, or with itself, need not be right.",
    ]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _share(ratio: Ratio) -> str:
    return "-" if ratio.value is None else f"{100 * ratio.value:.1f} %"


def _cell(ratio: Ratio) -> str:
    if ratio.value is None:
        return "-"
    interval = "" if ratio.low is None else f" ({_percent(ratio.low)} to {_percent(ratio.high)})"
    return f"{_percent(ratio.value)}{interval}, {ratio.hits:,}/{ratio.number:,}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
