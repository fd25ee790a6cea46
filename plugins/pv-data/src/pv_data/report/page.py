"""Report on labels: `labels.md`, `labels.html` and `labels.json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from pv_data.report.agreement import Ratio
from pv_data.report.labels import JudgeQuality, LabelReport, RuleQuality, SliceQuality
from pv_judge.pages.blocks import Block, Column, Heading, Items, Paragraph, Table
from pv_judge.pages.text import MISSING, coefficient, estimate, percent, plain, plural
from pv_judge.pages.writing import write_pages

__all__ = ["blocks", "write_label_report"]

OfRule: TypeAlias = "tuple[SliceQuality, str, RuleQuality]"
OfJudge: TypeAlias = "tuple[SliceQuality, JudgeQuality]"


def write_label_report(folder: Path, report: LabelReport, title: str = "Labels") -> None:
    """Write `labels.md`, `labels.html` and `labels.json`, all or none."""
    folder.mkdir(parents=True, exist_ok=True)
    write_pages(folder, blocks(report, title), report, name="labels")


def blocks(report: LabelReport, title: str) -> Iterator[Block]:
    """The parts of the report; names of slices and judges are from outside and cut to one short line."""
    parts = [report.pooled, *report.slices] if len(report.slices) != 1 else list(report.slices)
    judges = [(part, judge) for part in parts for judge in part.judges]
    yield Heading(plain(title), level=1)
    yield Paragraph(_summary(report))
    yield Heading("Labels against what is known")
    yield Table.of(
        LABELS, [(part, name, rule) for part in parts for name, rule in _distinct(part.rules)], repeated=2
    )
    yield Heading("Agreement of the judges")
    yield Table.of(AGREEMENT, parts)
    yield Heading("Each judge")
    yield Table.of(JUDGES, judges, repeated=2)
    yield Heading("Each judge beside the others")
    yield Table.of(PEERS, judges, repeated=2)
    yield Heading("How to read this")
    yield Items(_notes(report))


def _distinct(rules: Sequence[RuleQuality]) -> Iterable[tuple[str, RuleQuality]]:
    """Rules and their names; that of the run has no line of its own where it came to the same as another."""
    *others, own = rules
    same = [rule.rule for rule in others if replace(rule, rule=own.rule) == own]
    for rule in others:
        yield f"{rule.rule}, as this run" if rule.rule in same[:1] else rule.rule, rule
    if not same:
        yield own.rule, own


def _share(ratio: Ratio) -> str:
    return MISSING if ratio.value is None else f"{percent(ratio.value)} %"


def _cell(ratio: Ratio) -> str:
    """`83.3 (35.9 to 99.6), 5/6`."""
    if ratio.value is None:
        return MISSING
    return f"{estimate(ratio.value, ratio.low, ratio.high, percent)}, {ratio.hits:,}/{ratio.number:,}"


LABELS: Sequence[Column[OfRule]] = (
    Column("slice", lambda row: plain(row[0].slice), left=True),
    Column("rule", lambda row: row[1], left=True),
    Column("judged", lambda row: f"{row[0].judged:,}"),
    Column("kept", lambda row: _share(row[2].kept), "% of judged"),
    Column("known", lambda row: f"{row[0].known_true:,} / {row[0].known_false:,}", "right / wrong"),
    Column("precision of True", lambda row: _cell(row[2].precision_true), "%"),
    Column("recall of True", lambda row: _cell(row[2].recall_true), "%"),
    Column("precision of False", lambda row: _cell(row[2].precision_false), "%"),
    Column("recall of False", lambda row: _cell(row[2].recall_false), "%"),
)
AGREEMENT: Sequence[Column[SliceQuality]] = (
    Column("slice", lambda part: plain(part.slice), left=True),
    Column("proofs", lambda part: f"{part.agreement.items:,}", "2 votes or more"),
    Column(
        "votes",
        lambda part: (
            f"{part.agreement.votes / part.agreement.items:.3g}" if part.agreement.items else MISSING
        ),
        "a proof",
    ),
    Column("agreement", lambda part: percent(part.agreement.raw), "%"),
    Column("Fleiss kappa", lambda part: coefficient(part.agreement.kappa)),
    Column("Krippendorff alpha", lambda part: coefficient(part.agreement.alpha)),
    Column("Gwet AC1", lambda part: coefficient(part.agreement.ac1)),
    Column("on True", lambda part: percent(part.agreement.on_true), "%"),
    Column("on False", lambda part: percent(part.agreement.on_false), "%"),
)
OF_JUDGE: Sequence[Column[OfJudge]] = (
    Column("slice", lambda row: plain(row[0].slice), left=True),
    Column("judge", lambda row: plain(row[1].judge), left=True),
)
JUDGES: Sequence[Column[OfJudge]] = (
    *OF_JUDGE,
    Column("votes", lambda row: f"{row[1].accepts.number:,}"),
    Column("accepts", lambda row: _share(row[1].accepts), "%"),
    Column("true", lambda row: _cell(row[1].right), "% of known"),
    Column("accepts right proofs", lambda row: _cell(row[1].on_right), "%"),
    Column("rejects wrong proofs", lambda row: _cell(row[1].on_wrong), "%"),
)
PEERS: Sequence[Column[OfJudge]] = (
    *OF_JUDGE,
    Column("as most of the others", lambda row: _cell(row[1].peers.with_others), "% of votes"),
    Column("left out", lambda row: f"{row[1].peers.ties:,}", "others tied"),
    Column("Cohen kappa", lambda row: coefficient(row[1].peers.kappa)),
    Column("accepts what they accept", lambda row: _cell(row[1].peers.others_accept), "%"),
    Column("rejects what they reject", lambda row: _cell(row[1].peers.others_reject), "%"),
    Column("its votes all alike", lambda row: _cell(row[1].peers.alike), "% of proofs"),
    Column("two of its votes", lambda row: percent(row[1].peers.pairwise), "% alike"),
)


def _summary(report: LabelReport) -> str:
    pooled = report.pooled
    rules = ", ".join(map(plain, report.run_rules)) or "none"
    text = (
        f"{plural(pooled.judged, 'proof', ',')} in {plural(len(report.slices), 'slice')} were judged; "
        f"rule of the run: {rules}. "
    )
    if not pooled.known_true + pooled.known_false:
        return text + "Of none it is known by itself whether it is right, so labels cannot be checked here."
    unanimous, majority, _ = pooled.rules
    return text + (
        f"Of {pooled.known_true + pooled.known_false:,} it is known whether they are right "
        f"({pooled.known_true:,} are). Unanimity keeps {_share(unanimous.kept)} of the proofs and its labels are true "
        f"in {_share(unanimous.right)}; majority keeps {_share(majority.kept)}, true in {_share(majority.right)}."
    )


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
