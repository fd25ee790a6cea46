"""Export of a run: everything that is made from its tables, in one folder that is replaced as a whole."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pv_data.audit import Proven, prove, recorded
from pv_data.audit.marks import latest_marks
from pv_data.export.card import CardFacts, write_card
from pv_data.export.dataset_folder import Written, write_dataset
from pv_data.export.distribution import of_counts
from pv_data.export.spending import spending
from pv_data.export.storage import read_columns, whole_folder
from pv_data.export.triples import LabelRules, contradicted, kept_apart, panel_labels, triples
from pv_data.export.verl_parquet import VerlFormat, write_verl
from pv_data.records import OTHER_LABEL, Aside, AuditMark, Label, Problem, Proof, Qpc
from pv_data.report.labels import LabelReport, measure_labels
from pv_data.report.page import write_label_report
from pv_data.splits import SplitRules, Splits, split_problems
from pv_data.table import PartWriter, read_rows
from pv_rl.errors import DataError

__all__ = ["ExportSettings", "Exported", "Tables", "export"]

PART_ROWS = 5_000


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Folders or parts of tables; one that is not there is empty."""

    problems: Sequence[Path]
    proofs: Sequence[Path]
    """Those of the sources and those that were generated."""
    labels: Sequence[Path] = ()
    judgments: Sequence[Path] = ()
    marks: Sequence[Path] = ()
    aside: Sequence[Path] = ()

    @classmethod
    def of_run(cls, run: Path) -> Tables:
        """The tables of a run folder."""
        return cls(
            problems=[run / "problems"],
            proofs=[run / "proofs", run / "generated"],
            labels=[run / "labels"],
            judgments=[run / "judgments"],
            marks=[run / "marks"],
            aside=[run / "aside"],
        )


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """How a run becomes a data set."""

    title: str = "Question-proof-check triples"
    split: SplitRules = field(default_factory=SplitRules)
    labels: LabelRules = field(default_factory=LabelRules)
    verl: VerlFormat = field(default_factory=VerlFormat)
    human_sources: tuple[str, ...] = ()
    """Sources all of whose proofs count as people's in the distribution."""
    notes: tuple[str, ...] = ()
    """Further limits of the set, for its card."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was written."""

    written: Written
    splits: Splits
    left_out: Counter[str]
    """Proofs that are in no split, by reason."""
    aside: Counter[tuple[str, str]]
    """Rows that the run rejected, by stage and reason."""
    labels: LabelReport
    audit: Proven


def export(
    tables: Tables, folder: Path, settings: ExportSettings, clusters: Mapping[str, str] | None = None
) -> Exported:
    """Write `folder`:

        qpc/            the triples, a table of `Qpc`
        left_out/       proofs that are no triple and why, a table of `Aside`
        verl/           train.parquet, test.parquet
        dataset/        data/*.parquet and README.md, the card
        report/         labels.md, labels.html, labels.json, distribution_SPLIT.md and .csv
        SHA256SUMS      of all files, for `sha256sum -c`

    Problems are held in memory, and of each proof its id, its label and its votes; texts pass through.

    Args:
        clusters: problem id to cluster id, of near-duplicates.

    Raises:
        DataError: a table that cannot be read, or no proof with a label.
        ConfigError: the folder holds something else.
    """
    marks = list(read_rows(_there(tables.marks), AuditMark))
    problems = {problem.id: problem for problem in read_rows(_there(tables.problems), Problem)}
    audited = {mark.problem_id for mark in marks}
    splits = split_problems(problems.values(), settings.split, clusters=clusters, audited=audited)
    labels = measure_labels(read_rows(_there(tables.labels), Label))
    read = recorded(marks, read_rows(_there(tables.labels), Label))
    audit = prove(read.marks.values(), read.sizes)
    aside, relabelled = _aside(tables.aside)
    made = triples(
        read_rows(_there(tables.proofs), Proof),
        problems=problems,
        splits=splits,
        labels=panel_labels(read_rows(_there(tables.labels), Label)),
        marks=latest_marks(marks),
        rules=settings.labels,
        doubted=relabelled | contradicted(read_rows(_there(tables.proofs), Proof), problems),
    )
    with whole_folder(folder) as new:
        left_out = _write_triples(new, made)
        qpc = new / "qpc"
        if not qpc.exists():
            raise DataError(_nothing(left_out, aside))
        write_verl(new / "verl", read_rows(qpc, Qpc), settings.verl)
        facts = CardFacts(
            title=settings.title,
            splits=splits,
            rules=settings.labels,
            human_sources=settings.human_sources,
            notes=settings.notes,
            asked=spending(_there(tables.proofs), _there(tables.judgments)),
            aside=aside + Counter({("export", why): number for why, number in left_out.items()}),
            labels=labels,
            audit=audit,
        )
        written = write_dataset(new / "dataset", kept_apart(read_rows(qpc, Qpc)), partial(write_card, facts))
        _write_reports(new / "report", labels, written, settings)
        _write_checksums(new)
    return Exported(
        written=written, splits=splits, left_out=left_out, aside=aside, labels=labels, audit=audit
    )


def _write_triples(folder: Path, made: Iterable[Qpc | Aside]) -> Counter[str]:
    """Write both tables, some rows at a time. Returns the reasons of what is left out."""
    reasons: Counter[str] = Counter()
    qpc = PartWriter(Qpc, lambda part: folder / "qpc" / f"{part:05d}.parquet", rows=PART_ROWS)
    left_out = PartWriter(Aside, lambda part: folder / "left_out" / f"{part:05d}.parquet", rows=PART_ROWS)
    for row in made:
        if isinstance(row, Qpc):
            qpc.add(row)
        else:
            reasons[row.reason] += 1
            left_out.add(row)
    qpc.close()
    left_out.close()
    return reasons


def _write_reports(folder: Path, labels: LabelReport, written: Written, settings: ExportSettings) -> None:
    write_label_report(folder, labels, f"Labels: {settings.title}")
    for split in written.rows:
        table = of_counts(written.by_slice(split), human_sources=settings.human_sources)
        for end, text in (("md", table.to_markdown()), ("csv", table.to_csv())):
            (folder / f"distribution_{split}.{end}").write_text(text, encoding="utf-8", errors="replace")


def _write_checksums(folder: Path) -> None:
    """SHA256SUMS, for `sha256sum -c` where the export has been copied to."""
    lines = []
    for path in sorted(one for one in folder.rglob("*") if one.is_file() and not one.name.startswith(".")):
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        lines.append(f"{digest.hexdigest()}  {path.relative_to(folder)}\n")
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def _aside(tables: Sequence[Path]) -> tuple[Counter[tuple[str, str]], set[str]]:
    """Rejected rows by stage and reason, and the ids of proofs that a rejected row gives another label."""
    reasons: Counter[tuple[str, str]] = Counter()
    relabelled: set[str] = set()
    for some in read_columns(_there(tables), Aside, ("stage", "reason", "row")):
        for row in some.to_pylist():
            reasons[row["stage"], row["reason"]] += 1
            if row["reason"] == OTHER_LABEL:
                relabelled.add(row["row"])
    return reasons, relabelled


def _nothing(left_out: Counter[str], aside: Counter[tuple[str, str]]) -> str:
    """Why no proof has a label."""
    reasons = [f"{number:,} {why}" for why, number in left_out.most_common()]
    reasons += [f"{number:,} rejected by {stage} ({why})" for (stage, why), number in aside.most_common(9)]
    return (
        f"no proof has a label, and there is nothing to export: {'; '.join(reasons) or 'there is no proof'}. The table "
        "aside/ has the details of each row; retry_aside=true asks again about those with `no answer`, "
        "--redo STAGE also about those with `refused`"
    )


def _there(tables: Sequence[Path]) -> list[Path]:
    return [table for table in tables if table.exists()]
